import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ApiKeyId, EndpointId, UserId } from "../../../src/domain/Ids.ts"
import { EndpointStore } from "../../../src/webhooks/EndpointStore.ts"
import { ExpiringKeyStore } from "../../../src/webhooks/ExpiringKeyStore.ts"
import { describeMigratedStores } from "../../support/stores.ts"
import { newEvent } from "../../support/wallets.ts"

const userId = UserId.make("019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f")
const now = DateTime.makeUnsafe("2026-03-01T12:00:00Z")
const later = (hours: number) => DateTime.add(now, { hours })
const watching = EndpointId.make("whe_watching")

const prepare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO users (id, email, created_at) VALUES (${userId}, 'a@b.c', now())`
  for (const id of [watching, "whe_failing"]) {
    yield* sql`
      INSERT INTO webhook_endpoints
        (id, user_id, url, events, enabled, secret, secret_preview, failing_since, created_at, updated_at)
      VALUES (${id}, ${userId}, 'https://example.com', '{webhook.failing,key.expiring}', ${true}, 'x', 'x',
        ${DateTime.toDateUtc(now)}, now(), now())`
  }
  return sql
})

/** docs/reference/webhooks.md#failing-endpoints, #expiring-keys: what was found may have changed since. */
describeMigratedStores("an alert about an endpoint or a key", (database) => {
  const Live = Layer.mergeAll(EndpointStore.layer, ExpiringKeyStore.layer).pipe(
    Layer.provideMerge(database)
  )

  it.effect(
    "that fails is published once, and not if it was disabled or has begun to fail again",
    () =>
      Effect.gen(function* () {
        const sql = yield* prepare
        const store = yield* EndpointStore
        const publish = (failingSince: DateTime.Utc) =>
          store.publishFailing(
            {
              id: EndpointId.make("whe_failing"),
              userId,
              url: "https://example.com",
              failingSince
            },
            newEvent("webhook.failing"),
            later(24)
          )
        assert.deepStrictEqual(yield* publish(later(-1)), [])
        yield* sql`UPDATE webhook_endpoints SET enabled = false WHERE id = 'whe_failing'`
        assert.deepStrictEqual(yield* publish(now), [])
        yield* sql`UPDATE webhook_endpoints SET enabled = true`
        assert.deepStrictEqual(yield* publish(now), [watching])
        assert.deepStrictEqual(yield* publish(now), [])
      }).pipe(Effect.provide(Live))
  )

  it.effect("that expires is published once, and not if it is refused or expires otherwise", () =>
    Effect.gen(function* () {
      const sql = yield* prepare
      const store = yield* ExpiringKeyStore
      const id = ApiKeyId.make("key_1")
      yield* sql`
        INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at, expires_at)
        VALUES (${id}, ${userId}, 'x', 'x', 'x', '{}', now(), ${DateTime.toDateUtc(now)})`
      const publish = (expiresAt: DateTime.Utc) =>
        store.publish(
          { id, userId, name: "x", preview: "x", expiresAt },
          newEvent("key.expiring"),
          later(-24)
        )
      assert.deepStrictEqual(yield* publish(later(1)), [])
      yield* sql`UPDATE api_keys SET revoked_at = now()`
      assert.deepStrictEqual(yield* publish(now), [])
      yield* sql`UPDATE api_keys SET revoked_at = NULL, disabled_at = now()`
      assert.deepStrictEqual(yield* publish(now), [])
      yield* sql`UPDATE api_keys SET disabled_at = NULL`
      yield* sql`UPDATE webhook_endpoints SET enabled = false WHERE id = 'whe_failing'`
      assert.deepStrictEqual(yield* publish(now), [watching], "enabled endpoints get it")
      assert.deepStrictEqual(yield* publish(now), [])
    }).pipe(Effect.provide(Live))
  )
})
