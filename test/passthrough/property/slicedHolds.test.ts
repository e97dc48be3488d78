import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Exit, Option } from "effect"
import * as fc from "fast-check"
import type { TokenPrice } from "../../../src/catalog/Price.ts"
import { Credits, zero } from "../../../src/domain/Credits.ts"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { makeCallBatches } from "../../../src/passthrough/CallBatches.ts"
import type { CallBatches, Held, Raised, WriteBatch } from "../../../src/passthrough/CallBatches.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { CallEnd } from "../../../src/passthrough/CallStore.ts"
import { OutputSlices } from "../../../src/passthrough/slices/OutputSlices.ts"
import { SlicedHold } from "../../../src/passthrough/slices/SlicedHold.ts"
import type { RaiseOutcome } from "../../../src/passthrough/slices/SlicedHold.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  breachesOf,
  callEnd,
  callStart,
  credits,
  newCaller,
  newEvent,
  walletStores
} from "../../support/wallets.ts"

/** A token costs a thousand micro-credits, so a slice is about four credits. */
const microPerToken = 1000n
const price: TokenPrice = {
  per: "million_tokens",
  input: zero,
  output: Credits.make(microPerToken * 1_000_000n)
}
const slices = new OutputSlices([
  { price, inputTokens: 0, outputTokens: 20_000, keepsLong: false, tools: undefined }
])
/** The output never exceeds the model's limit. */
const costOf = (tokens: number) => Credits.make(BigInt(Math.min(tokens, 20_000)) * microPerToken)

/** `lost`: another process releases its hold and it never wakes; `late`: it wakes and ends afterwards. */
type Fate = "ends" | "lost" | "late"

const stream = fc.record({
  process: fc.nat(1),
  /** The tokens of each event. */
  events: fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 8 }),
  /** The vendor's figure, in tenths of what was counted. */
  tenths: fc.integer({ min: 0, max: 13 }),
  fate: fc.constantFrom<Fate>("ends", "ends", "ends", "ends", "lost", "late", "late")
})
type Stream = typeof stream extends fc.Arbitrary<infer A> ? A : never

const race = fc.record({
  balance: fc.constantFrom(6, 40, 5000),
  limit: fc.constantFrom(10, 60, 10_000),
  streams: fc.array(stream, { minLength: 40, maxLength: 40 }),
  /** The outcome of each write; `unseen`: committed, but without a response. */
  writes: fc.infiniteStream(
    fc.nat(15).map((n) => (n === 0 ? "undone" : n === 1 ? "unseen" : "seen"))
  )
})
type Race = typeof race extends fc.Arbitrary<infer A> ? A : never

const heldOf = (left: ReadonlyMap<string, Credits>): ReadonlyMap<string, Held> =>
  new Map([...left].map(([id, left]) => [id, { _tag: "Held", left }]))

const outcomeOf = (raised: Raised): RaiseOutcome =>
  typeof raised === "object" ? "budget" : raised === "key" ? "held" : raised

/** The possible charges of a stream. */
interface Played {
  readonly id: string
  readonly charges: ReadonlyArray<bigint>
  readonly end: "refused" | "cut" | "complete" | Fate
}

/** Plays one stream from its first hold to its end. Every event passes only when it is covered. */
const played = async (
  user: UserId,
  { events, fate, process, tenths }: Stream,
  processes: ReadonlyArray<CallBatches>
): Promise<Played> => {
  const start = { ...callStart(user, 0), amount: slices.first }
  const [own, other] = process === 0 ? processes : processes.toReversed()
  const opened = await new Promise<Exit.Exit<Held, StoreUnavailable>>((resolve) => {
    own!.openUnsafe(start, resolve)
  })
  const isOpen =
    Exit.isSuccess(opened) &&
    (opened.value === undefined ||
      (typeof opened.value === "object" && opened.value._tag === "Held"))
  if (!isOpen) return { id: start.id, charges: [0n], end: "refused" }
  let giveUp = () => {}
  const hold = new SlicedHold(slices, slices.first, (amount, onRaised) => {
    giveUp = own!.raiseUnsafe({ id: start.id, user, amount }, (raised) =>
      onRaised(outcomeOf(raised))
    )
  })
  const dies = Math.floor(events.length / 2)
  let passed = 0
  let cut = false
  for (const [n, tokens] of events.entries()) {
    if (fate !== "ends" && n === dies) {
      other!.closeUnsafe({ ...callEnd(start, 0), outcome: "lost" })
      if (fate === "lost") {
        giveUp()
        return { id: start.id, charges: [0n], end: fate }
      }
    }
    if (passed + tokens > hold.covered) {
      const outcome = await new Promise<RaiseOutcome>((resolve) =>
        hold.cover(passed + tokens, resolve)
      )
      cut = outcome !== "held"
      if (cut) break
    }
    passed += tokens
    assert.isTrue(costOf(passed) <= hold.amount, "what has passed is not held")
    hold.passed(passed)
  }
  giveUp()
  const cost = costOf(Math.ceil((passed * (cut ? 10 : tenths)) / 10))
  const captured = cost > hold.amount ? hold.amount : cost
  const beyond = cost - captured
  const end: CallEnd = { ...callEnd(start, 0), captured, outcome: "settled" }
  own!.closeUnsafe(beyond > 0n ? { ...end, beyond: Credits.make(beyond) } : end)
  // One released before it cost anything has no receipt to charge
  const charges = fate === "late" ? [captured, cost] : [cost]
  return { id: start.id, charges, end: cut ? "cut" : fate === "late" ? fate : "complete" }
}

const limitedCaller = Effect.fnUntraced(function* (balance: number, limit: number) {
  const user = yield* newCaller(balance)
  const key = ApiKeyId.make(callStart(user, 0).key)
  const change = { spendLimit: credits(limit), reset: "never" as const }
  yield* (yield* UserStore).updateKey(user, key, change, yield* DateTime.now)
  return user
})

/** Two processes that write to one store, which sometimes fails. */
const process = Effect.fnUntraced(function* (id: string, writes: Race["writes"]) {
  const calls = yield* CallStore
  const write: WriteBatch = (batch) =>
    Effect.gen(function* () {
      const outcome: string = writes.next().value
      if (outcome === "undone") return yield* new StoreUnavailable({ cause: outcome })
      const { left, refused } = yield* calls.write({
        ...batch,
        processId: id,
        alert: () => newEvent("balance.low"),
        throttleSeconds: 3600,
        now: yield* DateTime.now
      })
      if (outcome === "unseen") return yield* new StoreUnavailable({ cause: outcome })
      return new Map([...heldOf(left), ...refused])
    })
  return yield* makeCallBatches(write, () => 0)
})

const play = Effect.fnUntraced(function* ({ balance, limit, streams, writes }: Race) {
  const sql = yield* PgClient.PgClient
  const user = yield* limitedCaller(balance, limit)
  const all = yield* Effect.scoped(
    Effect.gen(function* () {
      const processes = [yield* process("prc_one", writes), yield* process("prc_two", writes)]
      return yield* Effect.promise(() =>
        Promise.all(streams.map((it) => played(user, it, processes)))
      )
    })
  )
  const receipts = yield* sql<{ id: string; captured: bigint; held: bigint }>`
    SELECT id, captured, held FROM calls WHERE user_id = ${user}`
  const captured = new Map(receipts.map((it) => [it.id, it.captured]))
  for (const { charges, end, id } of all) {
    assert.include(charges, captured.get(id) ?? 0n, `${end} ${id}`)
  }
  const wallet = Option.getOrThrow(yield* (yield* WalletStore).find(user))
  const charged = receipts.reduce((sum, it) => sum + it.captured, 0n)
  assert.strictEqual(wallet.held, 0n)
  assert.strictEqual(credits(balance) - wallet.settled, charged)
  const [budget] = yield* sql<{ held: bigint; spent: bigint; drift: bigint }>`
    SELECT held, spent, key_budgets_drift() AS drift FROM key_budgets
    WHERE api_key_id = ${callStart(user, 0).key}`
  assert.deepStrictEqual<unknown>(budget, { held: 0n, spent: charged, drift: 0n })
  assert.strictEqual(yield* breachesOf(user), 0)
  return all
})

describeLive(
  "streams of one wallet and one key that race for slices",
  walletStores,
  (it) => {
    it.effect(
      "hold what has passed, are charged exactly once, and leave nothing held",
      () =>
        Effect.gen(function* () {
          const ends = new Map<string, number>()
          for (const one of fc.sample(race, { numRuns: 25 })) {
            for (const { end } of yield* play(one)) ends.set(end, (ends.get(end) ?? 0) + 1)
          }
          for (const end of ["refused", "cut", "complete", "lost", "late"]) {
            assert.isAbove(ends.get(end) ?? 0, 5, `hardly a stream was ${end}`)
          }
        }),
      300_000
    )
  },
  "300 seconds"
)
