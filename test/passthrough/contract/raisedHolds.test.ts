import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import type { CallStart } from "../../../src/passthrough/CallStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
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

const raiseTo = ({ id, user }: CallStart, amount: number) => ({
  id,
  user,
  amount: credits(amount)
})

/** Gives a caller's key a spend limit that does not reset. */
const limitKey = Effect.fnUntraced(function* (userId: UserId, limit: number) {
  const now = yield* DateTime.now
  const key = ApiKeyId.make(callStart(userId, 0).key)
  const change = { spendLimit: credits(limit), reset: "never" as const }
  yield* (yield* UserStore).updateKey(userId, key, change, now)
})

const budgetOf = Effect.fnUntraced(function* (userId: UserId) {
  const sql = yield* PgClient.PgClient
  const [budget] = yield* sql<{ held: string; spent: string; drift: string }>`
    SELECT b.held::text AS held, b.spent::text AS spent, key_budgets_drift()::text AS drift
    FROM key_budgets b WHERE b.api_key_id = ${callStart(userId, 0).key}`
  return budget
})

/** Asserts the budget of the user's key, in millionths of a credit. */
const assertBudget = (userId: UserId, held: number, spent: number) =>
  Effect.map(budgetOf(userId), (budget) =>
    assert.deepEqual(budget, { held: String(held), spent: String(spent), drift: "0" })
  )

const linesOf = (userId: UserId) =>
  Effect.map(ledgerOf(userId), (ledger) =>
    ledger.slice(1).map((it) => [it.operationId, it.amount, it.settledAfter, it.heldAfter])
  )

describeLive("a hold that is raised", walletStores, (it) => {
  it.effect("grows by the missing amount, once for each new total, and is settled as a whole", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(10)
      const call = callStart(userId, 2)
      yield* writeCalls({ starts: [call] })
      const raises = [raiseTo(call, 5)]
      assert.strictEqual((yield* writeCalls({ raises })).refused.size, 0)
      assert.strictEqual((yield* writeCalls({ raises })).refused.size, 0)
      assert.strictEqual((yield* writeCalls({ raises: [raiseTo(call, 4)] })).refused.size, 0)
      yield* writeCalls({ raises: [raiseTo(call, 9)] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(10), held: credits(9) })
      yield* writeCalls({ ends: [callEnd(call, 6)] })
      assert.deepStrictEqual(yield* linesOf(userId), [
        [`hold:${call.id}`, credits(2), credits(10), credits(2)],
        [`hold:${call.id}:5000000`, credits(3), credits(10), credits(5)],
        [`hold:${call.id}:9000000`, credits(4), credits(10), credits(9)],
        [`capture:${call.id}`, credits(6), credits(4), credits(3)],
        [`release:${call.id}`, credits(3), credits(4), credits(0)]
      ])
      assert.deepInclude(yield* receiptOf(call), { held: credits(9), captured: credits(6) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("is refused beyond the balance, and changes nothing", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(10)
      const [small, large] = [callStart(userId, 2), callStart(userId, 4)]
      yield* writeCalls({ starts: [small, large] })
      const { refused } = yield* writeCalls({ raises: [raiseTo(large, 8), raiseTo(small, 3)] })
      assert.deepStrictEqual<unknown>([...refused], [[large.id, "balance"]])
      assert.deepInclude(yield* walletOf(userId), { held: credits(7) })
      assert.strictEqual((yield* writeCalls({ raises: [raiseTo(large, 7)] })).refused.size, 0)
      assert.deepInclude(yield* walletOf(userId), { settled: credits(10), held: credits(10) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect(
    "is raised after ended calls are settled and before new calls are held, in one transaction",
    () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(10)
        const [ended, running] = [callStart(userId, 6), callStart(userId, 3)]
        yield* writeCalls({ starts: [ended, running] })
        const cheap = callStart(userId, 1)
        const expensive = callStart(userId, 2)
        const { refused } = yield* writeCalls({
          ends: [callEnd(ended, 1)],
          raises: [raiseTo(running, 8)],
          starts: [expensive, cheap]
        })
        assert.deepStrictEqual<unknown>([...refused], [[expensive.id, "balance"]])
        assert.deepInclude(yield* walletOf(userId), { settled: credits(9), held: credits(9) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect(
    "counts towards the spend limit of its key, and is refused beyond what the limit leaves",
    () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(100)
        yield* limitKey(userId, 10)
        const [one, two] = [callStart(userId, 2), callStart(userId, 3)]
        const now = yield* DateTime.now
        yield* writeCalls({ starts: [one, two], now })
        const raises = [raiseTo(one, 5), raiseTo(two, 8)]
        const { refused } = yield* writeCalls({ raises, now })
        const left = { _tag: "OverSpendLimit", reset: "never", left: credits(5), at: now }
        assert.deepEqual<unknown>([...refused], [[two.id, left]])
        yield* assertBudget(userId, 8_000_000, 0)
        const rest = yield* writeCalls({ raises: [raiseTo(two, 5)], now })
        assert.strictEqual(rest.refused.size, 0, "all that is left")
        yield* assertBudget(userId, 10_000_000, 0)
        yield* writeCalls({ ends: [callEnd(one, 4), callEnd(two, 3)] })
        yield* assertBudget(userId, 0, 7_000_000)
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect("is limited only by the wallet once its budget period has ended", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(100)
      yield* limitKey(userId, 10)
      const call = callStart(userId, 2)
      yield* writeCalls({ starts: [call] })
      yield* sql`
        UPDATE key_budgets SET epoch = epoch + 1, held = 0 WHERE api_key_id = ${call.key}`
      assert.strictEqual((yield* writeCalls({ raises: [raiseTo(call, 50)] })).refused.size, 0)
      const { refused } = yield* writeCalls({ raises: [raiseTo(call, 101)] })
      assert.deepStrictEqual<unknown>([...refused], [[call.id, "balance"]])
      yield* writeCalls({ ends: [callEnd(call, 40)] })
      assert.deepInclude(yield* budgetOf(userId), { held: "0", spent: "0" })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("is lost if another process has released it, and its call is charged late", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(10)
      const call = callStart(userId, 2)
      yield* writeCalls({ starts: [call] })
      yield* writeCalls({ raises: [raiseTo(call, 5)] })
      yield* writeCalls({ ends: [{ ...callEnd(call, 0), outcome: "lost" }] })
      const { refused } = yield* writeCalls({ raises: [raiseTo(call, 8)] })
      assert.deepStrictEqual<unknown>([...refused], [[call.id, "lost"]])
      assert.deepInclude(yield* walletOf(userId), { settled: credits(10), held: credits(0) })
      yield* writeCalls({ ends: [callEnd(call, 9)] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(5), held: credits(0) })
      assert.deepInclude(yield* receiptOf(call), { chargedLate: true, captured: credits(5) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("is raised once by a batch that is written again because an alert is due", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(1010)
      yield* subscribe(userId)
      const [ended, running] = [callStart(userId, 20), callStart(userId, 2)]
      yield* writeCalls({ starts: [ended, running] })
      const { endpoints } = yield* writeCalls({
        ends: [callEnd(ended, 15)],
        raises: [raiseTo(running, 7)],
        alert: () => newEvent("balance.low")
      })
      assert.strictEqual(endpoints.length, 1)
      assert.deepInclude(yield* walletOf(userId), { settled: credits(995), held: credits(7) })
      assert.strictEqual(
        (yield* linesOf(userId)).filter(([id]) => id === `hold:${running.id}:7000000`).length,
        1
      )
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )
})

describeLive("what a call cost beyond its hold", walletStores, (it) => {
  const used = Effect.fnUntraced(function* (userId: UserId) {
    const sql = yield* PgClient.PgClient
    const [row] = yield* sql`
      SELECT sum(requests)::int AS requests, sum(credits)::text AS credits,
        sum(output_tokens)::int AS output
      FROM usage_days WHERE user_id = ${userId}`
    return row
  })

  it.effect("is charged late, once, in the transaction that settles the call", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(3)
      yield* limitKey(userId, 10)
      const call = callStart(userId, 3)
      yield* writeCalls({ starts: [call] })
      const ends = [{ ...callEnd(call, 3), beyond: credits(2) }]
      yield* writeCalls({ ends })
      yield* writeCalls({ ends })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(-2), held: credits(0) })
      assert.deepStrictEqual((yield* linesOf(userId)).slice(1), [
        [`capture:${call.id}`, credits(3), credits(0), credits(0)],
        [`late_charge:${call.id}`, credits(2), credits(-2), credits(0)]
      ])
      assert.deepInclude(yield* receiptOf(call), {
        outcome: "settled",
        chargedLate: true,
        held: credits(5),
        captured: credits(5),
        usage: { inputTokens: 20, outputTokens: 40, counted: false }
      })
      assert.deepEqual<unknown>(yield* used(userId), {
        requests: 1,
        credits: "5000000",
        output: 40
      })
      yield* assertBudget(userId, 0, 5_000_000)
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("is not charged when the call was released", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(3)
      const call = callStart(userId, 3)
      yield* writeCalls({ starts: [call] })
      yield* writeCalls({ ends: [{ ...callEnd(call, 0), outcome: "released" }] })
      yield* writeCalls({ ends: [{ ...callEnd(call, 3), beyond: credits(2) }] })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(3), held: credits(0) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("is also charged late if the call was drawn on a reservation", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(1000)
      yield* writeReservations({ sizes: [reservation(userId, 0, 20)] })
      const call = callStart(userId, 3)
      const drawn = drawnCall(call, 3)
      const ended = [{ ...drawn, end: { ...drawn.end, beyond: credits(2) } }]
      yield* writeReservations({ sizes: [reservation(userId, 0, 10)], ended })
      yield* writeReservations({ sizes: [reservation(userId, 0, 0)], ended })
      assert.deepInclude(yield* walletOf(userId), { settled: credits(995), held: credits(0) })
      assert.deepInclude(yield* receiptOf(call), {
        chargedLate: true,
        held: credits(5),
        captured: credits(5),
        usage: { inputTokens: 20, outputTokens: 40, counted: false }
      })
      assert.deepEqual<unknown>(yield* used(userId), {
        requests: 1,
        credits: "5000000",
        output: 40
      })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )
})

describeLive("a reservation whose running calls need more", walletStores, (it) => {
  const granted = (userId: UserId, needs: number, extra = 0) =>
    Effect.map(
      writeReservations({ sizes: [reservation(userId, needs, extra)] }),
      ({ grants }) => grants[0]?.granted
    )

  it.effect(
    "grows as far as the wallet covers it, and by a sixteenth of the rest for future calls",
    () =>
      Effect.gen(function* () {
        const userId = yield* newCaller(100)
        assert.strictEqual(yield* granted(userId, 0, 50), 6_250_000n)
        assert.strictEqual(yield* granted(userId, 36, 0), credits(36))
        // 36 are kept, 32 grow, and then 2 of the remaining 32
        assert.strictEqual(yield* granted(userId, 68, 50), credits(70))
        assert.strictEqual(yield* granted(userId, 200, 50), credits(100))
        assert.deepInclude(yield* walletOf(userId), { settled: credits(100), held: credits(100) })
        assert.strictEqual(yield* breachesOf(userId), 0)
      })
  )

  it.effect("grows as far as the spend limit of its key covers it", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(100)
      yield* limitKey(userId, 10)
      assert.strictEqual(yield* granted(userId, 4), credits(4))
      assert.strictEqual(yield* granted(userId, 30), credits(10))
      yield* assertBudget(userId, 10_000_000, 0)
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("grows even if its key was revoked, because a running call continues", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const userId = yield* newCaller(100)
      assert.strictEqual(yield* granted(userId, 4), credits(4))
      yield* sql`UPDATE api_keys SET revoked_at = now() WHERE user_id = ${userId}`
      assert.strictEqual(yield* granted(userId, 9, 5), credits(9))
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )

  it.effect("gets no more than the reservation of another key leaves in the wallet", () =>
    Effect.gen(function* () {
      const userId = yield* newCaller(10)
      const now = yield* DateTime.now
      const other = ApiKeyId.make(`key_second_${userId}`)
      yield* (yield* UserStore).createKey({
        id: other,
        userId,
        keyHash: Buffer.from(other),
        preview: "",
        name: "",
        scopes: ["inference"],
        expiresAt: null,
        now
      })
      const sizes = [reservation(userId, 7), { ...reservation(userId, 7), key: other }]
      const { grants } = yield* writeReservations({ sizes })
      assert.sameMembers(
        grants.map((it) => it.granted),
        [credits(7), credits(3)]
      )
      assert.deepInclude(yield* walletOf(userId), { held: credits(10) })
      assert.strictEqual(yield* breachesOf(userId), 0)
    })
  )
})
