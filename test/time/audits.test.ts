import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { advance, layerGateway, makeUser } from "../support/gateway.ts"

describe("the audit of the wallets", () => {
  it.effect("is left to the process that has just done it, and taken over when that is gone", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const otherProcessAudits = Effect.flatMap(
        DateTime.now,
        (now) => sql`UPDATE wallet_audit_rounds SET finished_at = ${DateTime.toDateUtc(now)}`
      )
      yield* advance("16 seconds")
      const user = yield* makeUser()
      const audited = Effect.map(
        sql`SELECT 1 FROM wallet_audits WHERE user_id = ${user.id}`,
        (rows) => rows.length > 0
      )
      for (let round = 0; round < 6; round += 1) {
        yield* otherProcessAudits
        yield* advance("10 seconds", "5 seconds")
      }
      assert.isFalse(yield* audited)
      yield* advance("31 seconds", "5 seconds")
      assert.isTrue(yield* audited)
    }).pipe(Effect.provide(layerGateway()))
  )
})
