import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { layerPostgres } from "../../../src/db/Database.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { startPooler } from "../../support/pooler.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

const image = "/vendors/alibaba/v1/text-to-image-max/generation"

/** docs/reference/processes.md#connections */
describe("connections of a process", () => {
  it.live(
    "are at most DB_POOL and one more, whatever the load",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        const counted = Effect.gen(function* () {
          const sql = yield* SqlClient
          const counts: Array<number> = []
          for (let n = 0; n < 20; n += 1) {
            const rows = yield* sql`
              SELECT 1 FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()`
            counts.push(rows.length)
            yield* Effect.sleep("50 millis")
          }
          return Math.max(...counts)
        }).pipe(Effect.provide(layerPostgres({ url: Redacted.make(href), maxConnections: 1 })))
        const gateway = yield* Effect.acquireDisposable(
          Effect.promise(() => GatewayProcess.start({ databaseUrl: href, env: { DB_POOL: "2" } }))
        )
        yield* Effect.promise(() => gateway.key())
        const load = Promise.all(
          Array.from({ length: 60 }, (_, n) =>
            n % 2 === 0
              ? gateway.call("POST", image, { prompt: `${n}` })
              : gateway.call("GET", "/manage/v1/wallet")
          )
        )
        const most = yield* counted
        for (const { status, text } of yield* Effect.promise(() => load)) {
          assert.oneOf(status, [200, 202], text)
        }
        assert.strictEqual(most, 3)
      }),
    180_000
  )
})

describe("a start while Postgres restarts", () => {
  it.live(
    "waits until Postgres is ready, and says so",
    () =>
      Effect.gen(function* () {
        const url = yield* processDatabaseUrl
        const pooler = yield* Effect.acquireDisposable(
          Effect.promise(() =>
            startPooler(Number(url.port), { mode: "session", settings: "passed" })
          )
        )
        pooler.state.isStarting = true
        url.port = String(pooler.port)
        const starting = GatewayProcess.start({ databaseUrl: url.href })
        yield* Effect.promise(() => until(() => pooler.state.clients > 5, { millis: 60_000 }))
        pooler.state.isStarting = false
        const gateway = yield* Effect.acquireDisposable(Effect.promise(() => starting))
        assert.match(gateway.output, /accepts no connections now; waiting for it/u)
      }),
    120_000
  )
})
