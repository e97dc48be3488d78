import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  breachesOf,
  callEnd,
  callStart,
  credits,
  ledgerOf,
  newCaller,
  newEvent,
  newWallet,
  subscribe,
  walletOf,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

describeLive("the call store", walletStores, (it) => {
  it.effect("settlements free credits for holds in the same batch", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(10)
      const first = callStart(userId, 9)
      yield* writeCalls({ starts: [first] })
      const second = callStart(userId, 9)
      assert.deepStrictEqual(
        (yield* writeCalls({ starts: [second] })).refused,
        new Map([[second.id, "balance"]])
      )
      const third = callStart(userId, 8)
      const { refused } = yield* writeCalls({ ends: [callEnd(first, 2)], starts: [third] })
      assert.strictEqual(refused.size, 0)
      assert.deepInclude(yield* walletOf(userId), { settled: credits(8), held: credits(8) })
      assert.deepStrictEqual(
        (yield* ledgerOf(userId)).slice(1).map(({ kind, operationId }) => [kind, operationId]),
        [
          ["hold", `hold:${first.id}`],
          ["capture", `capture:${first.id}`],
          ["release", `release:${first.id}`],
          ["hold", `hold:${third.id}`]
        ]
      )
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("the smaller calls of one wallet are held first; other wallets are not affected", () =>
    Effect.gen(function* () {
      const poor = yield* newCaller(10)
      const rich = yield* newCaller(1000)
      const prices = [7, 4, 11, 4, 0]
      const starts = prices.map((price) => callStart(poor, price))
      const { refused } = yield* writeCalls({ starts: [...starts, callStart(rich, 500)] })
      assert.deepStrictEqual(
        prices.map((_, n) => refused.get(starts[n]!.id)),
        ["balance", undefined, "balance", undefined, undefined]
      )
      assert.deepInclude(yield* walletOf(poor), { held: credits(8) })
      assert.deepInclude(yield* walletOf(rich), { held: credits(500) })
    })
  )

  it.effect("a key whose spend limit is used up takes nothing from another key of its wallet", () =>
    Effect.gen(function* () {
      const users = yield* UserStore
      const userId = yield* newCaller(10)
      const now = yield* DateTime.now
      const id = ApiKeyId.make(`key_limited_${userId}`)
      yield* users.createKey({
        id,
        userId,
        keyHash: Buffer.from(id),
        preview: "",
        name: "",
        scopes: ["inference"],
        expiresAt: null,
        now
      })
      const limit = { spendLimit: credits(3), reset: "never" as const }
      yield* users.updateKey(userId, id, limit, now)
      const limited = [2, 4, 5].map((price) => callStart(userId, price, undefined, id))
      const other = callStart(userId, 8)
      const { left, refused } = yield* writeCalls({ starts: [...limited, other], now })
      const refusal = { _tag: "OverSpendLimit", reset: "never", left: credits(1), at: now }
      assert.deepEqual<unknown>(refused.get(limited[1]!.id), refusal)
      assert.deepEqual<unknown>(refused.get(limited[2]!.id), refusal)
      assert.strictEqual(refused.size, 2)
      assert.strictEqual(left.get(limited[0]!.id), credits(1))
      assert.deepInclude(yield* walletOf(userId), { held: credits(10) })
    })
  )

  it.effect(
    "a revoked, expired, disabled or unknown key, or one without the scope, holds nothing",
    () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const sql = yield* PgClient.PgClient
        const now = yield* DateTime.now
        const revoked = callStart(yield* newCaller(10), 1)
        yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${revoked.key}`
        const expired = callStart(yield* newCaller(10), 1)
        yield* sql`UPDATE api_keys SET expires_at = ${DateTime.toDateUtc(now)} WHERE id = ${expired.key}`
        const other = callStart(yield* newCaller(10), 1)
        yield* sql`UPDATE api_keys SET scopes = '{manage}' WHERE id = ${other.key}`
        const disabled = callStart(yield* newCaller(10), 1)
        yield* users.update(disabled.user, { disabled: true }, now)
        const none = callStart(yield* newWallet(10), 1)
        const good = callStart(yield* newCaller(10), 1)
        const { refused } = yield* writeCalls({
          starts: [revoked, expired, disabled, other, none, good],
          now: DateTime.add(now, { minutes: 5 })
        })
        assert.deepStrictEqual(
          refused,
          new Map([revoked, expired, disabled, other, none].map(({ id }) => [id, "key"]))
        )
        assert.deepInclude(yield* walletOf(revoked.user), { held: credits(0) })
        const [key] = yield* users.listKeys(good.user, { before: Option.none(), limit: 1 }, now)
        assert.deepStrictEqual(key?.lastUsedAt, DateTime.add(now, { minutes: 5 }))
      })
  )

  it.effect(
    "a key holds nothing if its models have changed since they were checked for the call",
    () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const now = yield* DateTime.now
        const userId = yield* newCaller(1000)
        const allow = (allowedModels: ReadonlyArray<string> | null) =>
          users.updateKey(
            userId,
            ApiKeyId.make(callStart(userId, 1).key),
            { allowedModels, rateLimitPerMinute: 60 },
            now
          )
        const held = (models: ReadonlyArray<string> | null | undefined) =>
          Effect.map(
            writeCalls({
              starts: [
                {
                  ...callStart(userId, 1),
                  ...(models === undefined ? {} : { checked: { models } })
                }
              ]
            }),
            ({ refused }) => refused.size === 0
          )
        const listed = ['gpt-4o "é"', "o3"]
        yield* allow(listed)
        assert.isTrue(yield* held(listed))
        for (const models of [undefined, null, [], ["o3"], listed.toReversed()]) {
          assert.isFalse(yield* held(models))
        }
        yield* allow(null)
        assert.isTrue(yield* held(null))
        assert.isFalse(yield* held(listed))
        assert.isFalse(yield* held(undefined))
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect(
    "a replaced secret of a key with limits holds nothing, except in its grace period",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(1000)
        const { key } = callStart(userId, 1)
        const held = (rotation: number) =>
          Effect.map(
            writeCalls({
              starts: [{ ...callStart(userId, 1), rotation, checked: { models: ["o3"] } }]
            }),
            ({ refused }) => refused.size === 0
          )
        yield* sql`UPDATE api_keys SET rotations = 2, allowed_models = '{o3}' WHERE id = ${key}`
        assert.isTrue(yield* held(2))
        assert.isFalse(yield* held(1))
        yield* sql`UPDATE api_keys SET previous_key_until = '2100-01-01' WHERE id = ${key}`
        assert.isTrue(yield* held(1))
        assert.isFalse(yield* held(0))
      })
  )

  it.effect("a call whose key was not checked holds nothing with a secret that was replaced", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(10)
      const held = (rotation: number) =>
        Effect.map(
          writeCalls({ starts: [{ ...callStart(userId, 1), rotation }] }),
          ({ refused }) => refused.size === 0
        )
      assert.isTrue(yield* held(0))
      yield* sql`UPDATE api_keys SET rotations = 1, previous_key_until = '2100-01-01'
        WHERE user_id = ${userId}`
      assert.deepStrictEqual([yield* held(0), yield* held(1)], [false, true])
    })
  )

  it.effect("a call is settled once, for at most its hold, and has one receipt", () =>
    Effect.gen(function* () {
      const calls = yield* CallStore
      const userId = yield* newCaller(10)
      const start = callStart(userId, 3)
      yield* writeCalls({ starts: [start] })
      yield* writeCalls({ ends: [callEnd(start, 4), callEnd(callStart(userId, 1), 1)] })
      yield* writeCalls({ ends: [callEnd(start, 1)] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(7), held: credits(0) })
      const [receipt, ...others] = (yield* calls.search(userId, { limit: 9 })).rows
      assert.isEmpty(others)
      assert.deepInclude(receipt, {
        id: start.id,
        vendor: start.vendor,
        model: start.model,
        route: start.route,
        outcome: "settled",
        httpStatus: 200,
        held: credits(3),
        captured: credits(3),
        usage: { inputTokens: 20, outputTokens: 40, counted: false },
        sandbox: false,
        traceId: start.trace
      })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect(
    "the charge that crosses the threshold emits one alert, with the balance after it",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(1010)
        const silent = yield* newCaller(1001)
        yield* subscribe(userId)
        const starts = [1, 2, 3].map(() => callStart(userId, 8))
        const unsubscribed = callStart(silent, 8)
        yield* writeCalls({ starts: [...starts, unsubscribed] })
        const alerted: Array<unknown> = []
        const { endpoints } = yield* writeCalls({
          ends: [...starts, unsubscribed].map((start) => callEnd(start, 6)),
          starts: [callStart(userId, 100)],
          alert: (wallet) => {
            alerted.push(wallet)
            return newEvent("balance.low")
          }
        })
        // 1004, then 998: the second of three charges crosses the threshold; 8 are still held for the third
        assert.deepStrictEqual(alerted, [
          { userId, available: credits(990), threshold: credits(1000) }
        ])
        assert.strictEqual(endpoints.length, 1)
        const events = yield* sql`SELECT type FROM events WHERE user_id IN (${userId}, ${silent})`
        assert.deepStrictEqual(
          events.map(({ type }) => type),
          ["balance.low"]
        )
        const last = callStart(userId, 1)
        yield* writeCalls({ starts: [last] })
        assert.isEmpty((yield* writeCalls({ ends: [callEnd(last, 1)] })).endpoints)
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect("concurrent batches that share wallets in any order all complete", () =>
    Effect.gen(function* () {
      const users = yield* Effect.forEach(Array.from({ length: 6 }), () => newCaller(100))
      const rounds = Array.from({ length: 8 }, (_, n) =>
        Effect.gen(function* () {
          const mine = n % 2 === 0 ? users : users.toReversed()
          const starts = mine.map((userId) => callStart(userId, 5))
          yield* writeCalls({ starts })
          yield* writeCalls({ ends: starts.toReversed().map((start) => callEnd(start, 2)) })
        })
      )
      yield* Effect.all(rounds, { concurrency: "unbounded" })
      for (const userId of users) {
        assert.deepInclude(yield* walletOf(userId), { settled: credits(84), held: credits(0) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      }
    })
  )

  it.effect("orphans are the calls of dead processes, and those that are too old", () =>
    Effect.gen(function* () {
      const calls = yield* CallStore
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(100)
      const now = yield* DateTime.now
      yield* sql`INSERT INTO processes (id, started_at, heartbeat_at)
        VALUES ('prc_alive', ${DateTime.toDateUtc(now)}, ${DateTime.toDateUtc(now)})`
      const [alive, old, dead] = [1, 2, 3].map(() => callStart(userId, 1))
      yield* writeCalls({ starts: [alive!], processId: "prc_alive", now })
      const before = DateTime.subtract(now, { hours: 25 })
      yield* writeCalls({ starts: [old!], processId: "prc_alive", now: before })
      const day = callStart(userId, 1)
      const dayAgo = DateTime.subtract(now, { hours: 24 })
      yield* writeCalls({ starts: [day], processId: "prc_alive", now: dayAgo })
      yield* writeCalls({ starts: [dead!], processId: "prc_dead", now })
      const found = yield* calls.orphans(
        DateTime.subtract(now, { seconds: 30 }),
        DateTime.subtract(now, { hours: 24 }),
        100
      )
      const mine = found.filter((it) => it.userId === userId).map(({ id }) => id)
      assert.sameMembers(mine, [old!.id, dead!.id])
    })
  )

  it.effect(
    "a hold younger than the lease is not an orphan, because its process was alive when it was made",
    () =>
      Effect.gen(function* () {
        const calls = yield* CallStore
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(100)
        const now = yield* DateTime.now
        const ago = (seconds: number) => DateTime.subtract(now, { seconds })
        // Its heartbeat connection was away for longer than its pool
        yield* sql`INSERT INTO processes (id, started_at, heartbeat_at, left_at)
        VALUES ('prc_back', ${DateTime.toDateUtc(now)}, ${DateTime.toDateUtc(ago(40))}, NULL),
          ('prc_left', ${DateTime.toDateUtc(now)}, '-infinity', ${DateTime.toDateUtc(now)})`
        const [young, old, left] = [1, 2, 3].map(() => callStart(userId, 1))
        yield* writeCalls({ starts: [young!], processId: "prc_back", now: ago(30) })
        yield* writeCalls({ starts: [old!], processId: "prc_back", now: ago(31) })
        yield* writeCalls({ starts: [left!], processId: "prc_left", now: ago(1) })
        const found = yield* calls.orphans(ago(30), DateTime.subtract(now, { hours: 24 }), 100)
        const mine = found.filter((it) => it.userId === userId).map(({ id }) => id)
        assert.sameMembers(mine, [old!.id, left!.id])
      })
  )

  it.effect(
    "a hold or a ledger row without a wallet is refused, and no wallet can be removed",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(10)
        const start = callStart(userId, 1)
        yield* writeCalls({ starts: [start] })
        const unknownId = callStart(userId, 1).id
        yield* sql`INSERT INTO users (id, email, created_at) VALUES (${unknownId}, ${unknownId}, now())`
        const statements = [
          sql`INSERT INTO holds (id, user_id, kind, amount, created_at)
          VALUES (${unknownId}, ${unknownId}, 'call', 1, now())`,
          sql`INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after,
            operation_id, subject_id, created_at)
          VALUES (${unknownId}, 1, 'hold', 1, 2, 1, ${`hold:${unknownId}`}, ${unknownId}, now())`,
          sql`UPDATE holds SET user_id = ${unknownId} WHERE id = ${start.id}`,
          sql`DELETE FROM wallets WHERE user_id = ${userId}`,
          sql`UPDATE wallets SET user_id = ${unknownId} WHERE user_id = ${userId}`,
          sql`TRUNCATE wallets`
        ]
        for (const [index, statement] of statements.entries()) {
          const exit = yield* Effect.exit(statement)
          assert.strictEqual(exit._tag, "Failure", `statement ${index} was let through`)
        }
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )
})
