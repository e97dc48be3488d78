import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { eventually, layerGateway, operator } from "../../support/gateway.ts"
import { migratedDatabaseUrl } from "../../support/stores.ts"

/** Heartbeats fail as they do when the server says so. */
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

const repaired = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`DROP TRIGGER refuse ON processes`.unprepared
)

const readiness = Effect.andThen(TestClock.adjust("1 second"), operator("GET", "/readyz"))
const becomes = (status: number) => eventually(readiness, (answer) => answer.status === status)

const outage = (lines: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    assert.strictEqual((yield* operator("GET", "/readyz")).status, 200)
    yield* failWith("53100")
    const full = yield* becomes(503)
    assert.strictEqual(full.json.code, 5003)
    assert.strictEqual(
      full.json.detail,
      "The store takes no writes now: the disk of Postgres is full (SQLSTATE 53100)"
    )
    assert.match(full.headers.get("retry-after") ?? "", /^\d+$/u)
    for (let n = 0; n < 10; n += 1) assert.strictEqual((yield* readiness).status, 503)
    yield* failWith("25006")
    yield* eventually(readiness, ({ json }) => /read-only/u.test(json.detail))
    yield* repaired
    yield* becomes(200)
    assert.deepStrictEqual(
      lines.filter((line) => line.includes("heartbeat of this process")),
      [
        "The heartbeat of this process cannot be written: the disk of Postgres is full (SQLSTATE 53100)",
        "The heartbeat of this process cannot be written: Postgres is read-only, as a standby is (SQLSTATE 25006)",
        "The heartbeat of this process is written again"
      ]
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
describe("a store that refuses writes is named by /readyz and by the log, once", () => {
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
})
