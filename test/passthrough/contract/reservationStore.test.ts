import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { CallStart } from "../../../src/passthrough/CallStore.ts"
import { ReservationStore } from "../../../src/passthrough/reservations/ReservationStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import type { UserChange } from "../../../src/users/UserStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  breachesOf,
  callEnd,
  callKeyOf,
  callStart,
  credits,
  drawnCall,
  ledgerOf,
  newCaller,
  newEvent,
  newWallet,
  reservation,
  subscribe,
  walletOf,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

/** Reservations of keys with frequent calls (ADR 0116). */

const grantOf = Effect.fnUntraced(function* (userId: UserId, needs: number, extra = 0) {
  const { grants } = yield* writeReservations({ sizes: [reservation(userId, needs, extra)] })
  return grants[0]!
})

describeLive("the reservation store", walletStores, (it) => {
  it.effect("a reservation is held, its calls are captured from it, and the rest is released", () =>
    Effect.gen(function* () {
      const calls = yield* CallStore
      const userId = yield* newCaller(1000)
      const first = reservation(userId, 0, 20)
      const { grants } = yield* writeReservations({ sizes: [first] })
      assert.deepStrictEqual(grants, [
        {
          key: first.key,
          granted: credits(20),
          available: credits(1000),
          alive: true,
          expiresAt: null,
          left: null
        }
      ])
      assert.deepInclude(yield* walletOf(userId), { settled: credits(1000), held: credits(20) })
      const [one, two, three] = [3, 4, 5].map((price) => callStart(userId, price))
      const second = reservation(userId, 5, 10)
      yield* writeReservations({
        sizes: [second],
        ended: [drawnCall(one!, 2), drawnCall(two!, 0)]
      })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(998), held: credits(15) })
      yield* writeReservations({ sizes: [reservation(userId, 0)], ended: [drawnCall(three!, 5)] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(993), held: credits(0) })
      assert.deepStrictEqual(
        (yield* ledgerOf(userId))
          .slice(1)
          .map((it) => [it.kind, it.amount, it.operationId, it.note]),
        [
          ["hold", credits(20), `hold:${first.hold}`, null],
          ["release", credits(18), `release:${first.hold}`, null],
          ["capture", credits(2), `capture:${one!.id}`, first.hold],
          ["hold", credits(15), `hold:${second.hold}`, null],
          ["release", credits(10), `release:${second.hold}`, null],
          ["capture", credits(5), `capture:${three!.id}`, second.hold]
        ]
      )
      const { rows: receipts } = yield* calls.search(userId, { limit: 9 })
      assert.sameDeepMembers(
        receipts.map((it) => [it.id, it.outcome, it.held, it.captured]),
        [
          [one!.id, "settled", credits(3), credits(2)],
          [two!.id, "released", credits(4), credits(0)],
          [three!.id, "settled", credits(5), credits(5)]
        ]
      )
      const receipt = receipts.find(({ id }) => id === one!.id)
      assert.deepInclude(receipt, {
        vendor: one!.vendor,
        model: one!.model,
        route: one!.route,
        httpStatus: 200,
        usage: { inputTokens: 20, outputTokens: 40, counted: false },
        sandbox: false,
        traceId: one!.trace,
        createdAt: DateTime.makeUnsafe(1_800_000_000_000)
      })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect(
    "changes and ends of a key and its user report its open reservation, and no other",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const users = yield* UserStore
        const now = yield* DateTime.now
        const reports = Effect.fnUntraced(function* (userId: UserId) {
          const key = callKeyOf(userId)
          const rotation = { keyHash: Buffer.from(key), preview: "", oldUntil: null }
          const ofUser = (change: UserChange) =>
            Effect.map(users.update(userId, change, now), (it) => it._tag === "Updated" && it.wait)
          const updated = yield* users.updateKey(userId, key, { name: "changed" }, now)
          return [
            Option.getOrThrow(updated).reserved,
            Option.getOrThrow(yield* users.rotateKey(userId, key, rotation)),
            yield* ofUser({ rateLimitPerMinute: 5 }),
            yield* ofUser({ disabled: true }),
            Option.getOrThrow(yield* users.revokeKey(userId, key, now)),
            yield* Effect.map(
              sql`SELECT reserved FROM user_delete(${userId}, ${new Date(0)})`,
              ([row]) => row?.["reserved"]
            )
          ]
        })
        const [reserved, calling] = [yield* newCaller(100), yield* newCaller(100)]
        yield* grantOf(reserved, 5)
        yield* writeCalls({ starts: [callStart(calling, 1)] })
        assert.deepStrictEqual(
          yield* reports(reserved),
          Array.from({ length: 6 }, () => true)
        )
        assert.deepStrictEqual(
          yield* reports(calling),
          Array.from({ length: 6 }, () => false)
        )
      })
  )

  it.effect("only the newest secret of a rotated key draws on its reservation", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(1000)
      const alive = (rotation: number, extra = 0) =>
        Effect.map(
          writeReservations({ sizes: [{ ...reservation(userId, 5, extra), rotation }] }),
          ({ grants }) => grants.map((it) => [it.alive, it.granted])
        )
      assert.deepStrictEqual(yield* alive(0), [[true, credits(5)]])
      yield* sql`UPDATE api_keys SET rotations = 1 WHERE user_id = ${userId}`
      assert.deepStrictEqual(yield* alive(0), [[false, credits(5)]])
      assert.deepStrictEqual(yield* alive(0, 1), [[false, credits(5)]])
      assert.deepStrictEqual(yield* alive(1, 1), [[true, credits(6)]])
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect(
    "receipts of drawn and held calls have the vendor's request id and the time of the first token",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(1000)
        const [held, bare, drawn, again] = [1, 1, 5, 5].map((price) => callStart(userId, price))
        yield* writeCalls({ starts: [held!, bare!] })
        yield* writeCalls({
          ends: [
            { ...callEnd(held!, 1), requestId: "req_held", firstTokenMillis: 7 },
            { ...callEnd(bare!, 0), usage: null, requestId: "req_bare" }
          ]
        })
        yield* writeReservations({ sizes: [reservation(userId, 20)] })
        const ended = (start: CallStart, requestId: string) => {
          const call = drawnCall(start, 2)
          return { ...call, end: { ...call.end, requestId, firstTokenMillis: 8 } }
        }
        const first = ended(drawn!, "req_drawn")
        yield* writeReservations({ sizes: [reservation(userId, 10)], ended: [first] })
        // The first call is a repeat, so the slower function writes the second
        const batch = [first, ended(again!, "req_again")]
        yield* writeReservations({ sizes: [reservation(userId, 0)], ended: batch })
        const rows = yield* sql<{
          id: string
          requestId: string
          firstTokenMs: number | null
          usage: object | null
        }>`SELECT id, request_id, first_token_ms, usage FROM calls WHERE user_id = ${userId}`
        assert.deepStrictEqual(
          new Map(rows.map((row) => [row.id, [row.requestId, row.firstTokenMs]])),
          new Map([
            [held!.id, ["req_held", 7]],
            [bare!.id, ["req_bare", null]],
            [drawn!.id, ["req_drawn", 8]],
            [again!.id, ["req_again", 8]]
          ])
        )
        const usage = { inputTokens: 20, outputTokens: 40, counted: false }
        for (const row of rows) {
          assert.deepStrictEqual(row.usage, row.id === bare!.id ? null : usage)
        }
      })
  )

  it.effect("a repeated batch changes nothing, alone or with further calls", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(1000)
      yield* writeReservations({ sizes: [reservation(userId, 0, 20)] })
      const [one, two] = [callStart(userId, 8), callStart(userId, 8)]
      // 8 of the 9 that the batch names are charged, because the call was drawn for 8
      const free = drawnCall(callStart(userId, 0), 0)
      const batch = { sizes: [reservation(userId, 8, 1)], ended: [drawnCall(one, 9), free] }
      yield* writeReservations(batch)
      yield* writeReservations({ ...batch, sizes: [reservation(userId, 8, 1)] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(992), held: credits(9) })
      yield* writeReservations({
        sizes: [reservation(userId, 0)],
        ended: [...batch.ended, drawnCall(two, 7)]
      })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(985), held: credits(0) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect(
    "a reservation grows by a sixteenth of what is available, and shrinks only on request",
    () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(160)
        assert.strictEqual((yield* grantOf(userId, 0, 50)).granted, credits(10))
        assert.strictEqual((yield* grantOf(userId, 0, 8)).granted, credits(8))
        yield* writeCalls({ starts: [callStart(userId, 152)] })
        const poor = yield* grantOf(userId, 6, 4)
        assert.deepInclude(poor, { granted: credits(8), available: credits(0) })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(160), held: credits(160) })
        assert.strictEqual((yield* grantOf(userId, 1)).granted, credits(1))
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect(
    "a revoked, expired, disabled or unknown key, or one without the scope, gets none",
    () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const sql = yield* PgClient.PgClient
        const now = yield* DateTime.now
        const later = DateTime.add(now, { minutes: 5 })
        const [revoked, expired, disabled, other, none, good] = [
          reservation(yield* newCaller(1000), 0, 10),
          reservation(yield* newCaller(1000), 0, 10),
          reservation(yield* newCaller(1000), 0, 10),
          reservation(yield* newCaller(1000), 0, 10),
          reservation(yield* newWallet(1000), 0, 10),
          reservation(yield* newCaller(1000), 0, 10)
        ]
        yield* writeReservations({ sizes: [revoked, expired, disabled, good] })
        const until = (at: DateTime.Utc, key: string) =>
          sql`UPDATE api_keys SET expires_at = ${DateTime.toDateUtc(at)} WHERE id = ${key}`
        yield* sql`UPDATE api_keys SET revoked_at = now() WHERE id = ${revoked.key}`
        yield* until(now, expired.key)
        yield* users.update(disabled.user, { disabled: true }, now)
        yield* until(DateTime.add(later, { minutes: 1 }), good.key)
        yield* sql`UPDATE api_keys SET scopes = '{manage}' WHERE id = ${other.key}`
        const again = [revoked, expired, disabled, other, none, good].map(({ user }) =>
          reservation(user, 0, 20)
        )
        const { grants } = yield* writeReservations({ sizes: again, now: later })
        const byKey = new Map(grants.map((it) => [it.key, it]))
        const found = again.map(({ key }) => byKey.get(key))
        assert.deepStrictEqual(
          found.map((it) => [it?.alive, it?.granted]),
          [
            [false, credits(10)],
            [false, credits(10)],
            [false, credits(10)],
            [false, credits(0)],
            [false, credits(0)],
            [true, credits(20)]
          ]
        )
        assert.deepStrictEqual(found[5]?.expiresAt, DateTime.add(later, { minutes: 1 }))
        const [key] = yield* users.listKeys(good.user, { before: Option.none(), limit: 1 }, now)
        assert.deepStrictEqual(key?.lastUsedAt, later)
        // Another user's key does not spend from this wallet
        const otherWallet = { ...reservation(yield* newCaller(1000), 0, 10), key: good.key }
        const { grants: foreign } = yield* writeReservations({
          sizes: [otherWallet],
          processId: "prc_other",
          now: later
        })
        assert.deepInclude(foreign[0], { alive: false, granted: credits(0) })
      })
  )

  it.effect(
    "nothing is drawn on a reservation that exceeds what a lowered spend limit leaves",
    () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const userId = yield* newCaller(1000)
        const key = ApiKeyId.make(reservation(userId, 0).key)
        const limitTo = (amount: number) =>
          Effect.flatMap(DateTime.now, (now) =>
            users.updateKey(userId, key, { spendLimit: credits(amount), reset: "never" }, now)
          )
        yield* limitTo(160)
        assert.deepInclude(yield* grantOf(userId, 0, 10), { alive: true, granted: credits(10) })
        yield* limitTo(9)
        // Calls may have been drawn meanwhile, so the reservation stays, but takes no new calls
        assert.deepInclude(yield* grantOf(userId, 4, 6), { alive: false, granted: credits(10) })
        assert.deepInclude(yield* grantOf(userId, 4), { alive: true, granted: credits(4) })
        yield* limitTo(3)
        assert.deepInclude(yield* grantOf(userId, 4), { alive: false, granted: credits(4) })
        assert.deepInclude(yield* grantOf(userId, 0), { alive: true, granted: credits(0) })
        assert.deepInclude(yield* grantOf(userId, 0, 1), { alive: true, granted: credits(3 / 16) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect(
    "a revocation sees every reservation that is opened at the same time, or prevents it",
    () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const now = yield* DateTime.now
        for (let round = 0; round < 40; round += 1) {
          const userId = yield* newCaller(1000)
          const size = reservation(userId, 0, 10)
          const open = writeReservations({ sizes: [size] })
          const revoke = users.revokeKey(userId, ApiKeyId.make(size.key), now)
          const [opened, revoked] = yield* round % 2 === 0
            ? Effect.all([open, revoke], { concurrency: 2 })
            : Effect.map(
                Effect.all([revoke, open], { concurrency: 2 }),
                ([b, a]) => [a, b] as const
              )
          const isOpen = opened.grants[0]!.alive
          if (isOpen) assert.deepStrictEqual(revoked, Option.some(true), `round ${round}`)
        }
      })
  )

  it.effect("two processes hold reservations for one key at the same time", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(1600)
      yield* writeReservations({ sizes: [reservation(userId, 0, 30)], processId: "prc_one" })
      yield* writeReservations({ sizes: [reservation(userId, 0, 40)], processId: "prc_two" })
      assert.deepInclude(yield* walletOf(userId), { held: credits(70) })
      yield* writeReservations({ sizes: [reservation(userId, 0)], processId: "prc_one" })
      assert.deepInclude(yield* walletOf(userId), { held: credits(40) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("a call without cover is charged late", () =>
    Effect.gen(function* () {
      const calls = yield* CallStore
      const userId = yield* newCaller(1000)
      yield* writeReservations({ sizes: [reservation(userId, 0, 5)] })
      const [one, two] = [callStart(userId, 4), callStart(userId, 4)]
      yield* writeReservations({
        sizes: [reservation(userId, 0)],
        ended: [drawnCall(one, 4), drawnCall(two, 4)]
      })
      const three = callStart(userId, 4)
      yield* writeReservations({ sizes: [reservation(userId, 0)], ended: [drawnCall(three, 4)] })
      const { rows: receipts } = yield* calls.search(userId, { limit: 9 })
      assert.sameDeepMembers(
        receipts.map((it) => [it.id, it.outcome, it.captured, it.chargedLate]),
        [
          [one.id, "settled", credits(4), false],
          [two.id, "settled", credits(4), true],
          [three.id, "settled", credits(4), true]
        ]
      )
      assert.deepInclude(yield* walletOf(userId), { settled: credits(988), held: credits(0) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("the charge that crosses the threshold emits one alert, in its transaction", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(1010)
      yield* subscribe(userId)
      yield* writeReservations({ sizes: [reservation(userId, 0, 40)] })
      const started = [1, 2, 3].map(() => callStart(userId, 8))
      const alerted: Array<unknown> = []
      const { endpoints, grants } = yield* writeReservations({
        sizes: [reservation(userId, 8)],
        ended: started.map((start) => drawnCall(start, 6)),
        alert: (wallet) => {
          alerted.push(wallet)
          return newEvent("balance.low")
        }
      })
      // 1004, then 998, of which the third call takes 6 in the same transaction
      assert.deepStrictEqual(alerted, [
        { userId, available: credits(992), threshold: credits(1000) }
      ])
      assert.strictEqual(endpoints.length, 1)
      assert.strictEqual(grants.length, 1)
      const events = yield* sql`SELECT type FROM events WHERE user_id = ${userId}`
      assert.strictEqual(events.length, 1)
      const last = yield* writeReservations({
        sizes: [reservation(userId, 0)],
        ended: [drawnCall(callStart(userId, 8), 6)]
      })
      assert.isEmpty(last.endpoints)
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("concurrent batches of many kinds on shared wallets all complete", () =>
    Effect.gen(function* () {
      const users = yield* Effect.forEach(Array.from({ length: 6 }), () => newCaller(1000))
      const rounds = Array.from({ length: 8 }, (_, n) =>
        Effect.gen(function* () {
          const mine = n % 2 === 0 ? users : users.toReversed()
          const processId = `prc_${n}`
          const starts = mine.map((userId) => callStart(userId, 2))
          yield* writeReservations({ sizes: mine.map((it) => reservation(it, 0, 2)), processId })
          yield* writeCalls({ starts })
          yield* writeReservations({
            sizes: mine.map((it) => reservation(it, 0)),
            ended: mine.map((it) => drawnCall(callStart(it, 2), 1)),
            processId
          })
          yield* writeCalls({ ends: starts.map((start) => callEnd(start, 1)) })
        })
      )
      yield* Effect.all(rounds, { concurrency: "unbounded" })
      for (const userId of users) {
        assert.deepInclude(yield* walletOf(userId), { settled: credits(984), held: credits(0) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      }
    })
  )

  it.effect(
    "a reservation younger than the lease is not lost, because its process was alive when it was made",
    () =>
      Effect.gen(function* () {
        const store = yield* ReservationStore
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(1000)
        const now = yield* DateTime.now
        const silent = DateTime.toDateUtc(DateTime.subtract(now, { seconds: 40 }))
        yield* sql`INSERT INTO processes (id, started_at, heartbeat_at)
        VALUES ('prc_back', ${silent}, ${silent})`
        yield* writeReservations({ sizes: [reservation(userId, 0, 10)], processId: "prc_back" })
        const mine = (since: DateTime.Utc) =>
          Effect.map(store.lost(since, 100), (all) => all.filter((it) => it.userId === userId))
        assert.lengthOf(yield* mine(DateTime.subtract(now, { seconds: 30 })), 0)
        assert.lengthOf(yield* mine(DateTime.add(now, { seconds: 5 })), 1)
      })
  )

  it.effect("reservations of dead processes are found and closed", () =>
    Effect.gen(function* () {
      const store = yield* ReservationStore
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(1000)
      const now = yield* DateTime.now
      yield* sql`INSERT INTO processes (id, started_at, heartbeat_at)
        VALUES ('prc_living', ${DateTime.toDateUtc(now)}, ${DateTime.toDateUtc(now)})`
      for (const processId of ["prc_living", "prc_dead"]) {
        yield* writeReservations({ sizes: [reservation(userId, 0, 10)], processId })
      }
      const lost = yield* store.lost(DateTime.subtract(now, { seconds: 30 }), 100)
      const mine = lost.filter((it) => it.userId === userId)
      assert.deepStrictEqual(
        mine.map(({ processId }) => processId),
        ["prc_dead"]
      )
      for (const { processId } of [...mine, ...mine]) {
        yield* writeReservations({ sizes: [reservation(userId, 0)], processId })
      }
      assert.deepInclude(yield* walletOf(userId), { settled: credits(1000), held: credits(10) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )
})
