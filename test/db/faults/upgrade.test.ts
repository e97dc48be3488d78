import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Logger, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { eventually } from "../../support/gateway.ts"
import { schemaFolder } from "../../support/schemaFolder.ts"
import { freshDatabase } from "../../support/stores.ts"

/** Puts a row of the table into the table; its callers take turns. */
const functions = (values: string) => ({
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

const colour = "alter table things add column colour text"

/** A database of the release before: what the process of a new release does, and sessions of others. */
const upgraded = Effect.gen(function* () {
  const url = yield* freshDatabase()
  const session = Effect.map(
    Layer.build(layerPostgres({ url: Redacted.make(url.href), maxConnections: 2 })),
    Context.get(SqlClient)
  )
  const folder = yield* schemaFolder(
    {
      "0001_things.sql": `create table things (id int, name text);
        create table turns as select 1 as n; create table others (id int)`
    },
    functions("n, 'a'"),
    "lock table turns in exclusive mode"
  )
  const own = yield* session
  const migrate = Effect.provideService(Migrations.migrate(folder.options), SqlClient, own)
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
  return { folder, migrate, other, session, waiting }
})

/** As pg_dump locks it. */
const lockOthers = "LOCK TABLE others IN ACCESS SHARE MODE"

/** Keeps what this statement locks, as pg_dump or a forgotten transaction does, until `use` has ended. */
const whileLocked = <A, E, R>(
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

describe("an upgrade beside processes of the release before", () => {
  it.live("shows the schema with the functions that go with it, and nothing in between", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, waiting } = yield* upgraded
      folder.write({ "0002_colour.sql": colour, "0003_others.sql": "drop table others" })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const migrating = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          const columns = yield* other`SELECT id FROM schema_migrations`
          assert.lengthOf(columns, 1)
          return fiber
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(migrating), [
        "0002_colour",
        "0003_others",
        "functions/things"
      ])
      yield* other`SELECT thing_add(1)`
      assert.deepStrictEqual(yield* other`SELECT * FROM things`, [
        { id: 1, name: "a", colour: "red" }
      ])
    })
  )

  it.live("does not keep others from a table that somebody has locked for long", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_others.sql": "alter table others add column name text" })
      const third = yield* session
      const migrating = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          yield* third`INSERT INTO others VALUES (1)`
          return fiber
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_others"])
    })
  )

  it.live("waits for the calls that have begun, and changes nothing before", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_colour.sql": colour })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const third = yield* session
      const begun = Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(migrate)
        yield* waiting(1)
        yield* third`INSERT INTO things VALUES (1, 'b')`
        return fiber
      })
      const migrating = yield* whileLocked(other, "SELECT 1 FROM turns FOR UPDATE", begun)
      yield* Fiber.join(migrating)
      assert.deepStrictEqual(yield* third`SELECT * FROM things`, [
        { id: 1, name: "b", colour: null }
      ])
    })
  )

  it.live("a call that has waited for it is repeated, not done with a body of before", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({
        "0002_colour.sql": `${colour}; drop table others`
      })
      folder.writeFunctions(functions("n, 'a', 'red'"))
      const third = yield* session
      const [migrating, calling] = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          const call = yield* Effect.forkChild(Effect.flip(third`SELECT thing_add(1)`))
          yield* waiting(2)
          return [fiber, call] as const
        })
      )
      yield* Fiber.join(migrating)
      const error = yield* Fiber.join(calling)
      assert.isTrue(error.isRetryable, String(error.reason.cause))
      yield* third`SELECT thing_add(1)`
    })
  )

  it.live("one that comes second changes nothing, and stops nobody", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session, waiting } = yield* upgraded
      folder.write({ "0002_others.sql": "alter table others add column name text" })
      const third = yield* session
      const [first, moving] = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const first = yield* Effect.forkChild(migrate)
          yield* waiting(1)
          const second = yield* Effect.forkChild(migrate)
          yield* waiting(2)
          // Before the second in the queue for what the upgrade locks
          const moving = yield* Effect.forkChild(
            whileLocked(third, "SELECT 1 FROM turns FOR UPDATE", Fiber.join(second))
          )
          yield* waiting(3)
          return [first, moving] as const
        })
      )
      assert.deepStrictEqual(yield* Fiber.join(first), ["0002_others"])
      assert.deepStrictEqual(yield* Fiber.join(moving), [])
    })
  )

  it.effect("tries less and less often while a table stays locked: each try stops money", () =>
    Effect.gen(function* () {
      const { folder, migrate, other, session } = yield* upgraded
      folder.write({ "0002_others.sql": "alter table others add column name text" })
      const third = yield* session
      const isTrying = Effect.map(
        third`
          SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        (rows) => rows.length > 0
      )
      const warnings: Array<unknown> = []
      const logger = Logger.make(({ message }) => warnings.push(message))
      // What a connection sees of a try may be over before the migration itself knows, and then waits
      const untilWarned = (times: number) =>
        eventually(
          Effect.sync(() => warnings.length),
          (length) => length === times
        )
      const migrating = yield* whileLocked(
        other,
        lockOthers,
        Effect.gen(function* () {
          const logged = Effect.provide(migrate, Logger.layer([logger]))
          const fiber = yield* Effect.forkChild(logged)
          for (const [before, seconds] of [2, 4].entries()) {
            yield* untilWarned(before + 1)
            yield* TestClock.adjust(Duration.seconds(seconds - 1))
            // Each round trip lets one more statement of a try finish
            for (let round = 0; round < 9; round++) assert.isFalse(yield* isTrying)
            if (seconds === 2) yield* TestClock.adjust("1 second")
          }
          return fiber
        })
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(migrating), ["0002_others"])
      assert.lengthOf(warnings, 2)
    })
  )
})
