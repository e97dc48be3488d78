import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ManageReplays } from "../../../src/users/ManageReplays.ts"
import { RequestQuotas } from "../../../src/users/RequestQuotas.ts"
import { layerGateway, makeUser } from "../../support/gateway.ts"

describe("idempotency keys older than 24 hours", () => {
  it.effect("are removed as fast as a busy day creates them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const user = yield* makeUser()
      yield* sql`
        INSERT INTO idempotency_keys (user_id, key, request_hash, body, created_at)
        SELECT ${user.id}::uuid, 'old-' || n, ''::bytea, '{}', '1969-12-30T23:59:59Z'
        FROM generate_series(1, 5000) n`
      yield* sql`
        INSERT INTO idempotency_keys (user_id, key, request_hash, body, created_at)
        VALUES (${user.id}, 'young', ''::bytea, '{}', '1969-12-31T00:00:01Z')`
      yield* sql`
        INSERT INTO manage_idempotency_keys (caller, key, request_hash, claim, created_at)
        SELECT user_id, key, ''::bytea, gen_random_uuid(), created_at FROM idempotency_keys`
      yield* (yield* ManageReplays).deleteExpired
      assert.deepStrictEqual(yield* sql`SELECT key FROM idempotency_keys`, [{ key: "young" }])
      assert.deepStrictEqual(yield* sql`SELECT key FROM manage_idempotency_keys`, [
        { key: "young" }
      ])
    }).pipe(Effect.provide(layerGateway()))
  )
})

describe("buckets of requests that are full again", () => {
  it.effect("are removed, so deleted endpoints leave none behind", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        INSERT INTO request_buckets (api_key_id, tokens, admitted, filled_at)
        SELECT 'test:we_' || n, 99, true, '1969-12-30T23:59:59Z' FROM generate_series(1, 3000) n`
      yield* sql`
        INSERT INTO request_buckets (api_key_id, tokens, admitted, filled_at)
        VALUES ('test:young', 0, false, '1969-12-31T00:00:01Z')`
      yield* (yield* RequestQuotas).deleteFull
      assert.deepStrictEqual(yield* sql`SELECT api_key_id FROM request_buckets`, [
        { apiKeyId: "test:young" }
      ])
    }).pipe(Effect.provide(layerGateway()))
  )
})
