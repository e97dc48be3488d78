import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import type { CallStart } from "../../../src/passthrough/CallStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeStores } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callEnd,
  callStart,
  credits,
  drawnCall,
  ledgerOf,
  newCaller,
  newEvent,
  reservation,
  subscribe,
  walletOf,
  receiptOf,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

const lostEnd = (start: CallStart) => ({ ...callEnd(start, 0), outcome: "lost" as const })

/** Another process considers the process of these calls dead. */
const rescue = (...starts: ReadonlyArray<CallStart>) => writeCalls({ ends: starts.map(lostEnd) })

const topUp = Effect.fnUntraced(function* (userId: UserId, amount: number, operation: string) {
  return yield* (yield* WalletStore).add({
    userId,
    kind: amount > 0 ? "top_up" : "adjustment",
    amount: credits(amount),
    operationId: `${operation}:${userId}`,
    note: null,
    traceId: "",
    now: yield* DateTime.now
  })
})

/** A wallet of 10 credits whose call of 8 was rescued, after which 9 credits were held again. */
const overdrawn = Effect.gen(function* () {
  const userId = yield* newCaller(10)
  const late = callStart(userId, 8)
  yield* writeCalls({ starts: [late] })
  yield* rescue(late)
  const other = callStart(userId, 9)
  yield* writeCalls({ starts: [other] })
  yield* writeCalls({ ends: [callEnd(late, 8)] })
  return { userId, other }
})

describeStores("late charges", (database) => {
  liveLayer(Layer.provideMerge(walletStores, database))((it) => {
    it.effect("a call that ends after its rescue is charged once, for at most its hold", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(100)
        const [cheap, expensive, free] = [
          callStart(userId, 8),
          callStart(userId, 3),
          callStart(userId, 2)
        ]
        yield* writeCalls({ starts: [cheap, expensive, free] })
        yield* rescue(cheap, expensive, free)
        assert.deepInclude(yield* receiptOf(cheap), { outcome: "lost", chargedLate: false })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(100), held: credits(0) })
        const ends = [callEnd(cheap, 5), callEnd(expensive, 4), callEnd(free, 0)]
        yield* writeCalls({ ends })
        yield* writeCalls({ ends })
        yield* writeCalls({ ends: [callEnd(cheap, 8)], starts: [callStart(userId, 1)] })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(92), held: credits(1) })
        assert.sameDeepMembers(
          (yield* ledgerOf(userId))
            .filter(({ kind }) => kind === "late_charge")
            .map((it) => [it.operationId, it.amount, it.subjectId, it.heldAfter]),
          [
            [`late_charge:${cheap.id}`, credits(5), cheap.id, credits(0)],
            [`late_charge:${expensive.id}`, credits(3), expensive.id, credits(0)]
          ]
        )
        assert.deepInclude(yield* receiptOf(cheap), {
          outcome: "settled",
          chargedLate: true,
          held: credits(8),
          captured: credits(5),
          httpStatus: 200,
          accountId: "openai:0123456789",
          usage: { inputTokens: 20, outputTokens: 40, counted: false }
        })
        assert.deepInclude(yield* receiptOf(expensive), { chargedLate: true, captured: credits(3) })
        assert.deepInclude(yield* receiptOf(free), { outcome: "lost", chargedLate: false })
        const [used] = yield* sql`
          SELECT sum(requests)::int AS requests, sum(credits)::bigint::text AS credits,
            sum(output_tokens)::int AS output
          FROM usage_days WHERE user_id = ${userId}`
        assert.deepStrictEqual<unknown>(used, { requests: 2, credits: "8000000", output: 80 })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
    )

    it.effect("a call whose reservation was closed by a rescue is charged once", () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(1000)
        const [before, late, more] = [
          callStart(userId, 5),
          callStart(userId, 5),
          callStart(userId, 5)
        ]
        yield* writeReservations({ sizes: [reservation(userId, 15)] })
        yield* writeReservations({
          sizes: [reservation(userId, 10)],
          ended: [drawnCall(before, 2)]
        })
        // Rescues the process's calls
        yield* writeReservations({ sizes: [reservation(userId, 0)] })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(998), held: credits(0) })
        const ended = [drawnCall(late, 4)]
        yield* writeReservations({ sizes: [reservation(userId, 5)], ended })
        yield* writeReservations({ sizes: [reservation(userId, 5)], ended })
        yield* writeReservations({
          sizes: [reservation(userId, 0)],
          ended: [drawnCall(before, 2), drawnCall(late, 4), drawnCall(more, 3)]
        })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(991), held: credits(0) })
        assert.deepInclude(yield* receiptOf(late), {
          outcome: "settled",
          chargedLate: true,
          held: credits(5),
          captured: credits(4)
        })
        // It was reserved again from the available balance
        assert.deepInclude(yield* receiptOf(more), { outcome: "settled", chargedLate: false })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
    )

    it.effect(
      "only a late charge may exceed the balance; then nothing is accepted until a top-up",
      () =>
        Effect.gen(function* () {
          const { other, userId } = yield* overdrawn
          assert.deepInclude(yield* walletOf(userId), { settled: credits(2), held: credits(9) })
          const size = reservation(userId, 0, 10)
          const isRefused = Effect.gen(function* () {
            const starts = [callStart(userId, 0), callStart(userId, 0.000001)]
            const { refused } = yield* writeCalls({ starts })
            const tasks = yield* Effect.forEach([0, 1], (price) => accept(userId, price))
            const { grants } = yield* writeReservations({ sizes: [size] })
            const answers = [
              ...starts.map(({ id }) => refused.get(id) === "balance"),
              ...tasks.map(({ outcome }) => outcome._tag === "BalanceTooLow"),
              ...grants.map(({ alive, granted }) => !alive && granted === credits(0))
            ]
            assert.strictEqual(new Set(answers).size, 1, JSON.stringify(answers))
            return answers[0]
          })
          assert.isTrue(yield* isRefused)
          // What is held can still be charged
          yield* writeCalls({ ends: [callEnd(other, 7)] })
          assert.deepInclude(yield* walletOf(userId), { settled: credits(-5), held: credits(0) })
          assert.isTrue(yield* isRefused)
          assert.strictEqual((yield* topUp(userId, -1, "down"))._tag, "BelowHeld")
          assert.strictEqual((yield* topUp(userId, 4, "part"))._tag, "Added")
          assert.deepInclude(yield* walletOf(userId), { settled: credits(-1), held: credits(0) })
          assert.isTrue(yield* isRefused)
          yield* topUp(userId, 200, "rest")
          assert.isFalse(yield* isRefused)
          assert.strictEqual(yield* breachesOf(userId), 0)
        })
    )

    it.effect("a reservation keeps what running calls need, and nothing for future calls", () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(200)
        const late = callStart(userId, 195)
        yield* writeCalls({ starts: [late] })
        yield* rescue(late)
        yield* writeReservations({ sizes: [reservation(userId, 4, 6)] })
        yield* writeCalls({ ends: [callEnd(late, 195)] })
        assert.deepInclude(yield* walletOf(userId), { settled: credits(5), held: credits(10) })
        const { grants } = yield* writeReservations({ sizes: [reservation(userId, 4, 6)] })
        assert.deepStrictEqual(
          grants.map(({ alive, granted }) => [alive, granted]),
          [[false, credits(4)]]
        )
        assert.deepInclude(yield* walletOf(userId), { settled: credits(5), held: credits(4) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
    )

    it.effect("a late charge counts in the key's budget and may cross the alert threshold", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(1004)
        yield* subscribe(userId)
        const now = yield* DateTime.now
        const limit = { spendLimit: credits(9), reset: "daily" as const }
        yield* users.updateKey(userId, ApiKeyId.make(callStart(userId, 1).key), limit, now)
        const starts = [callStart(userId, 5), callStart(userId, 4)]
        yield* writeCalls({ starts })
        yield* rescue(...starts)
        const again = callStart(userId, 6)
        yield* writeCalls({ starts: [again] })
        const alerted: Array<unknown> = []
        const { endpoints } = yield* writeCalls({
          ends: starts.map((start) => callEnd(start, 4)),
          alert: (wallet) => {
            alerted.push(wallet)
            return newEvent("balance.low")
          }
        })
        assert.deepStrictEqual(alerted, [
          { userId, available: credits(990), threshold: credits(1000) }
        ])
        assert.strictEqual(endpoints.length, 1)
        const [budget] = yield* sql`SELECT spent::text, held::text FROM key_budgets
          WHERE api_key_id = ${starts[0]!.key}`
        assert.deepStrictEqual<unknown>(budget, { spent: "8000000", held: "6000000" })
        const refused = callStart(userId, 1)
        const outcome = yield* writeCalls({ starts: [refused], now })
        assert.deepEqual<unknown>(outcome.refused.get(refused.id), {
          _tag: "OverSpendLimit",
          reset: "daily",
          left: credits(0),
          at: now
        })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
    )

    it.effect("a late charge begins the key's budget period that is due, and counts in it", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const sql = yield* PgClient.PgClient
        const userId = yield* newCaller(100)
        const now = yield* DateTime.now
        const [early, late] = [callStart(userId, 3), callStart(userId, 4)]
        const limit = { spendLimit: credits(9), reset: "daily" as const }
        yield* users.updateKey(userId, ApiKeyId.make(late.key), limit, now)
        yield* writeCalls({ starts: [early, late], now })
        yield* writeCalls({ ends: [callEnd(early, 3), lostEnd(late)], now })
        yield* writeCalls({ ends: [callEnd(late, 4)], now: DateTime.add(now, { days: 1 }) })
        const budgets = yield* sql`
          SELECT spent::text FROM key_budgets WHERE api_key_id = ${late.key}`
        assert.deepStrictEqual(budgets, [{ spent: "4000000" }])
      })
    )

    it.effect(
      "the audit finds no drift, and the database refuses other entries that leave less than the holds",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const wallets = yield* WalletStore
          const { userId } = yield* overdrawn
          const now = yield* DateTime.now
          yield* wallets.audit({ after: Option.none(), wallets: 10_000, entries: 10_000, now })
          assert.notInclude(yield* wallets.drifting, userId)
          const { rows } = yield* wallets.search(userId, { before: Option.none(), limit: 1 })
          const seq = Number(rows[0]!.seq) + 1
          const id = callStart(userId, 1).id
          const move = (kind: string, settled: number, held: number) =>
            sql.unsafe(`WITH entry AS (
              INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id,
                subject_id, created_at)
              VALUES ('${userId}', ${seq}, '${kind}', 1, ${settled}, ${held}, '${kind}:${id}', '${id}', now()))
            UPDATE wallets SET settled = ${settled}, held = ${held}, entry_count = ${seq}
            WHERE user_id = '${userId}'`)
          const { held, settled } = yield* walletOf(userId)
          const current = [Number(settled), Number(held)] as const
          for (const [kind, by, of] of [
            ["capture", -1, 0],
            ["hold", 0, 1],
            ["release", -1, 0],
            ["late_charge", -2, 0]
          ] as const) {
            const exit = yield* Effect.exit(move(kind, current[0] + by, current[1] + of))
            assert.strictEqual(exit._tag, "Failure", kind)
          }
          assert.strictEqual((yield* Effect.exit(move("late_charge", -1, -1)))._tag, "Failure")
          assert.strictEqual(yield* breachesOf(userId), 0)
        })
    )
  })
})
