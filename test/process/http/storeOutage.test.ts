import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { eventually, layerGateway, operator } from "../../support/gateway.ts"
import { migratedDatabaseUrl } from "../../support/stores.ts"

/** Makes heartbeats fail as they do when the server reports this state. */
const failWith = (state: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(`
      CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file' USING ERRCODE = '${state}';
      END $$`).unprepared
    yield* sql`CREATE OR REPLACE TRIGGER refuse BEFORE INSERT OR UPDATE ON processes
      FOR EACH ROW EXECUTE FUNCTION refuse()`.unprepared
  })

/** Refuses new rows but not heartbeats, which need no new space. */
const refuseRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const raise = `BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END`
  yield* sql.unsafe(`
    CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$ ${raise} $$`).unprepared
  yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON users
    FOR EACH ROW EXECUTE FUNCTION refuse_row()`.unprepared
  yield* sql`ALTER FUNCTION store_try_write RENAME TO store_try_write_kept`.unprepared
  yield* sql.unsafe(`
    CREATE FUNCTION store_try_write() RETURNS void LANGUAGE plpgsql AS $$ ${raise} $$`).unprepared
})

const takeRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DROP TRIGGER refuse ON users`.unprepared
  yield* sql`DROP FUNCTION store_try_write`.unprepared
  yield* sql`ALTER FUNCTION store_try_write_kept RENAME TO store_try_write`.unprepared
})

const repaired = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`DROP TRIGGER refuse ON processes`.unprepared
)

const readiness = Effect.andThen(TestClock.adjust("1 second"), operator("GET", "/readyz"))
const becomes = (status: number) => eventually(readiness, (answer) => answer.status === status)

/** The process may become ready before the line is written. */
const isLogged = (lines: ReadonlyArray<string>, line: string) =>
  eventually(
    Effect.sync(() => lines.includes(line)),
    (is) => is
  )

const outage = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    assert.strictEqual((yield* operator("GET", "/readyz")).status, 200)
    yield* failWith("53100")
    const full = yield* becomes(503)
    assert.strictEqual(full.json.code, 5003)
    assert.strictEqual(
      full.json.detail,
      "The store accepts no writes now: the disk of Postgres is full (SQLSTATE 53100)"
    )
    assert.match(full.headers.get("retry-after") ?? "", /^\d+$/u)
    for (let n = 0; n < 10; n += 1) assert.strictEqual((yield* readiness).status, 503)
    yield* failWith("25006")
    yield* eventually(readiness, ({ json }) => /read-only/u.test(json.detail))
    yield* repaired
    yield* becomes(200)
    yield* isLogged(lines, "The heartbeat of this process is written again")
    assert.deepStrictEqual(
      lines.filter((line) => line.includes("heartbeat of this process")),
      [
        "The heartbeat of this process cannot be written: the disk of Postgres is full (SQLSTATE 53100)",
        "The heartbeat of this process cannot be written: Postgres is read-only, as a standby is (SQLSTATE 25006)",
        "The heartbeat of this process is written again"
      ]
    )
  })

const refusedRows = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* refuseRows
    for (let n = 0; n < 5; n += 1) assert.strictEqual((yield* readiness).status, 200)
    const create = operator("POST", "/manage/v1/users", { email: "ada@example.com" })
    assert.strictEqual((yield* create).status, 503)
    const full = yield* becomes(503)
    assert.strictEqual(
      full.json.detail,
      "The store accepts no writes now: the disk of Postgres is full (SQLSTATE 53100)"
    )
    for (let n = 0; n < 5; n += 1) assert.strictEqual((yield* readiness).status, 503)
    yield* takeRows
    yield* becomes(200)
    yield* isLogged(lines, "The store accepts writes again")
    assert.strictEqual((yield* create).status, 201)
    assert.deepStrictEqual(
      lines.filter((line) => line.startsWith("The store ")),
      [
        "The store refuses writes: the disk of Postgres is full (SQLSTATE 53100)",
        "The store accepts writes again"
      ]
    )
  })

const refusedStatements = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.unsafe(`
      CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'out of memory' USING ERRCODE = '53200'; END $$`).unprepared
    yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON users
      FOR EACH ROW EXECUTE FUNCTION refuse_row()`.unprepared
    const line = "The store refused a statement: Postgres is out of memory (SQLSTATE 53200)"
    for (let n = 0; n < 3; n += 1) {
      const refused = yield* operator("POST", "/manage/v1/users", { email: "ada@example.com" })
      assert.deepStrictEqual([refused.status, refused.json.code], [503, 5003])
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* readiness).status, 200)
    }
    yield* isLogged(lines, line)
    assert.deepStrictEqual(
      lines.filter((it) => it.startsWith("The store ")),
      [line]
    )
  })

const logged = () => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    lines.push(String(Array.isArray(message) ? message[0] : message))
  })
  return { lines, logger: Logger.layer([logger]) }
}

/** docs/operating.md#gatewaystoreaway */
describe.for([
  ["heartbeats", outage],
  ["only new rows", refusedRows],
  ["single statements", refusedStatements]
] as const)(
  "a store that refuses %s is reported in the log once, and by /readyz unless it accepts others",
  ([, outage]) => {
    it.effect("Postgres", () =>
      Effect.gen(function* () {
        const { lines, logger } = logged()
        const url = yield* migratedDatabaseUrl
        const client = layerPostgres({ url: Redacted.make(url.href) })
        const database = Layer.orDie(Layer.provideMerge(Migrations.layer(), client))
        yield* outage(lines).pipe(
          Effect.provide(
            Layer.provide(layerGateway({ database, env: { DATABASE_URL: url.href } }), logger)
          )
        )
      })
    )
    it.effect("embedded", () => {
      const { lines, logger } = logged()
      return outage(lines).pipe(Effect.provide(Layer.provide(layerGateway(), logger)))
    })
  }
)
