import { Clock, Context, Effect, Layer, Logger, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { randomBytes } from "node:crypto"
import { layerPostgres } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { schemaFolder } from "./schemaFolder.ts"
import { freshDatabase } from "./stores.ts"

/** SQL functions that build a row and insert it. A row lock makes their callers take turns. */
export const functions = (values: string) => ({
  "things.sql": `create or replace function thing_row(n int) returns things language plpgsql as $$
  begin
    return (${values})::things;
  end $$;
create or replace function thing_add(n int) returns int language plpgsql as $$
  begin
    perform 1 from turns for update;
    insert into things select * from thing_row(n);
    return n;
  end $$;`
})

export const colour = "alter table things add column colour text"

/** A database of the previous release, with the steps of a process of the new release and with other sessions. */
export const upgraded = Effect.gen(function* () {
  const url = yield* freshDatabase()
  const sessionAt = ({ href }: URL) =>
    Effect.map(
      Layer.build(layerPostgres({ url: Redacted.make(href), maxConnections: 2 })),
      Context.get(SqlClient)
    )
  const session = sessionAt(url)
  const sessionAs = (role: string) => {
    const own = new URL(url)
    own.username = role
    own.password = role
    return sessionAt(own)
  }
  const folder = yield* schemaFolder(
    {
      "0001_things.sql": `create table things (id int, name text);
        create table turns as select 1 as n; create table others (id int)`
    },
    functions("n, 'a'"),
    "lock table turns in exclusive mode"
  )
  const warnings: Array<string> = []
  const logger = Logger.make(({ message }) => warnings.push(String(message)))
  const clock = yield* Clock.Clock
  let pauses = 0
  const countingPauses: Clock.Clock = {
    currentTimeMillis: clock.currentTimeMillis,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
    currentTimeNanos: clock.currentTimeNanos,
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    sleep: (duration) =>
      Effect.suspend(() => {
        pauses += 1
        return clock.sleep(duration)
      })
  }
  const migrateAs = (sql: SqlClient) =>
    Migrations.migrate(folder.options).pipe(
      Effect.provideService(SqlClient, sql),
      Effect.provideService(Clock.Clock, countingPauses),
      Effect.provide(Logger.layer([logger]))
    )
  /** Waits until this many tries have failed and the next one waits for the clock. */
  const untilPaused = (tries: number) =>
    Effect.suspend(() => (pauses < tries ? Effect.fail("not yet") : Effect.void)).pipe(
      Effect.retry(Schedule.spaced("20 millis")),
      TestClock.withLive
    )
  const migrate = migrateAs(yield* session)
  yield* migrate
  const other = yield* session
  const waiting = (n: number) =>
    other`
      SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`.pipe(
      Effect.filterOrFail(([row]) => row?.["n"] === n),
      Effect.retry(Schedule.spaced("20 millis")),
      Effect.asVoid
    )
  return {
    folder,
    migrate,
    migrateAs,
    other,
    session,
    sessionAs,
    untilPaused,
    waiting,
    warnings
  }
})

/** A role that may use objects that others own, until the scope closes. Its password is its name. */
export const makeRole = (sql: SqlClient) =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const name = `role_${randomBytes(6).toString("hex")}`
      yield* sql.unsafe(`CREATE ROLE ${name} LOGIN PASSWORD '${name}'`)
      yield* sql.unsafe(`GRANT ALL ON SCHEMA public TO ${name}`)
      yield* sql.unsafe(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${name}`)
      return name
    }),
    (name) =>
      Effect.andThen(
        sql.unsafe(`DROP OWNED BY ${name} CASCADE`),
        sql.unsafe(`DROP ROLE ${name}`)
      ).pipe(Effect.ignore)
  )

/** The lock that pg_dump takes. */
export const lockOthers = "LOCK TABLE others IN ACCESS SHARE MODE"

/** Holds this statement's locks until `use` has ended, like pg_dump or a forgotten transaction. */
export const whileLocked = <A, E, R>(
  sql: SqlClient,
  lock: string,
  use: Effect.Effect<A, E, R>
): Effect.Effect<A, unknown, R> =>
  Effect.flatMap(sql.reserve, (connection) =>
    Effect.gen(function* () {
      const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
      yield* run("BEGIN")
      yield* run(lock)
      const result = yield* use
      yield* run("COMMIT")
      return result
    })
  ).pipe(Effect.scoped)

/** Starts a call while `migrate` waits for a table, and waits until the call is blocked by the upgrade. */
export const callDuring = <A, E, B, E2, R, R2>(
  { other, waiting }: Pick<Effect.Success<typeof upgraded>, "other" | "waiting">,
  migrate: Effect.Effect<A, E, R>,
  call: Effect.Effect<B, E2, R2>
) =>
  whileLocked(
    other,
    lockOthers,
    Effect.gen(function* () {
      const migrating = yield* Effect.forkChild(migrate)
      yield* waiting(1)
      const calling = yield* Effect.forkChild(call)
      yield* waiting(2)
      return [migrating, calling] as const
    })
  )

/** Whether a session is waiting for a table. */
export const tryingIn = (sql: SqlClient) =>
  Effect.map(
    sql`
      SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    (rows) => rows.length > 0
  )
