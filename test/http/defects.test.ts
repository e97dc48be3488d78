import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { layerPostgres } from "../../src/db/Database.ts"
import * as Migrations from "../../src/db/Migrations.ts"
import { eventually, layerGateway, makeUser, operator } from "../support/gateway.ts"
import { migratedDatabaseUrl, postgresServer } from "../support/stores.ts"

describe("faults inside the service", () => {
  it.effect("a defect is a 500 problem without inner detail, and is logged", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* (yield* SqlClient.SqlClient)`DROP TABLE wallets CASCADE`
      const answer = yield* user.call("GET", "/manage/v1/wallet")
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.headers.get("content-type"), "application/problem+json")
      assert.match(answer.headers.get("traceparent") ?? "", /^00-/u)
      assert.deepStrictEqual(answer.json, {
        type: "/docs/errors#5000",
        title: "Internal error",
        status: 500,
        detail: "Something failed inside the service",
        instance: "/manage/v1/wallet",
        code: 5000
      })
    }).pipe(Effect.provide(layerGateway()))
  )

  it.live("an unavailable store is 503 with Retry-After until it is back", () =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      const client = layerPostgres({ url: Redacted.make(url.href) })
      const database = Layer.orDie(Layer.provideMerge(Migrations.layer(), client))
      const server = layerPostgres({ url: Redacted.make((yield* postgresServer).href) })
      const name = url.pathname.slice(1)
      const admin = (statement: string) =>
        Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(statement).unprepared).pipe(
          Effect.provide(server, { local: true }),
          Effect.orDie
        )
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* operator("GET", "/manage/v1/users")).status, 200)
        yield* admin(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
        yield* admin(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`
        )
        const away = yield* operator("GET", "/manage/v1/users")
        assert.strictEqual(away.status, 503, away.text)
        assert.strictEqual(away.json.code, 5003)
        assert.match(away.headers.get("retry-after") ?? "", /^\d+$/u)
        assert.strictEqual((yield* operator("GET", "/readyz")).status, 503)
        yield* admin(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
        yield* eventually(operator("GET", "/manage/v1/users"), ({ status }) => status === 200)
      }).pipe(
        Effect.provide(layerGateway({ database, env: { DATABASE_URL: url.href } }), { local: true })
      )
    })
  )
})
