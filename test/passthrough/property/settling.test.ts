import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { DrawnCall } from "../../../src/passthrough/reservations/ReservationStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { describeStores } from "../../support/stores.ts"
import {
  breaches,
  callStart,
  drawnCall,
  ledgerOf,
  newWallet,
  reservation,
  walletStores,
  writeReservations
} from "../../support/wallets.ts"

interface Key {
  readonly user: UserId
  readonly id: string
}

/** Two wallets, the first with three keys, interleaved. */
const newKeys = Effect.fnUntraced(function* (balances: readonly [number, number]) {
  const users = yield* UserStore
  const now = yield* DateTime.now
  const [one, two] = yield* Effect.forEach(balances, newWallet)
  return yield* Effect.forEach([one!, two!, one!, one!], (user) => {
    const id = ApiKeyId.make(`key_${randomUUID()}`)
    return Effect.as(
      users.createKey({
        id,
        userId: user,
        keyHash: Buffer.from(id),
        preview: "",
        name: "",
        scopes: ["inference"],
        expiresAt: null,
        now
      }),
      { user, id } satisfies Key
    )
  })
})

const amount = fc.integer({ min: 0, max: 5 })

/** For each key: whether its reservation is sized, and its ended calls with the hold and the cost of each. */
const batches = fc.array(
  fc.array(
    fc.record({
      isDue: fc.boolean(),
      needs: amount,
      extra: fc.integer({ min: 0, max: 40 }),
      calls: fc.array(fc.tuple(amount, fc.integer({ min: 0, max: 6 })), { maxLength: 4 })
    }),
    { minLength: 4, maxLength: 4 }
  ),
  { minLength: 1, maxLength: 6 }
)

const call = (key: Key, held: number, cost: number): DrawnCall =>
  drawnCall({ ...callStart(key.user, held), key: ApiKeyId.make(key.id) }, cost)

/** Plays the same batches in a separate wallet. With `repeats`, each also contains a call that was settled before. */
const play = Effect.fnUntraced(function* (
  balances: readonly [number, number],
  steps: typeof batches extends fc.Arbitrary<infer A> ? A : never,
  repeats: boolean
) {
  const calls = yield* CallStore
  const keys = yield* newKeys(balances)
  const first = keys[0]!
  const settled = call(first, 1, 1)
  const place = (id: string) => keys.findIndex((key) => key.id === id)
  yield* writeReservations({ sizes: [{ ...reservation(first.user, 1, 9), key: first.id }] })
  yield* writeReservations({
    sizes: [{ ...reservation(first.user, 0, 9), key: first.id }],
    ended: [settled]
  })
  const granted = []
  for (const step of steps) {
    const due = step.flatMap((it, n) => (it.isDue || n === 0 ? [{ ...it, key: keys[n]! }] : []))
    const { grants } = yield* writeReservations({
      sizes: due.map(({ extra, key, needs }) => ({
        ...reservation(key.user, needs, extra),
        key: key.id
      })),
      // Alternating between the keys
      ended: [
        ...(repeats ? [settled] : []),
        ...[0, 1, 2, 3].flatMap((n) =>
          due.flatMap((it) => it.calls.slice(n, n + 1).map((one) => call(it.key, ...one)))
        )
      ]
    })
    granted.push(
      grants
        .map((it) => [place(it.key), it.granted, it.available, it.alive])
        .toSorted(([a], [b]) => Number(a) - Number(b))
    )
  }
  const wallets = []
  for (const { user } of keys.slice(0, 2)) {
    const ledger = yield* ledgerOf(user)
    ledger.forEach((entry, n) => {
      const before = ledger[n - 1] ?? { settledAfter: 0n, heldAfter: 0n }
      const { amount: by, kind } = entry
      const isCharge = kind === "capture" || kind === "late_charge"
      const settles = isCharge ? -by : kind === "top_up" ? by : 0n
      const holds = kind === "hold" ? by : kind === "top_up" || kind === "late_charge" ? 0n : -by
      assert.strictEqual(entry.seq, BigInt(n + 1))
      assert.strictEqual(entry.settledAfter, before.settledAfter + settles)
      assert.strictEqual(entry.heldAfter, before.heldAfter + holds)
    })
    const { rows: receipts } = yield* calls.search(user, { limit: 1000 })
    wallets.push({
      lines: ledger.map(({ amount: by, kind }) => `${kind} ${by}`).toSorted(),
      last: [ledger.at(-1)?.settledAfter, ledger.at(-1)?.heldAfter],
      receipts: receipts.map((it) => [it.outcome, it.held, it.captured].join(" ")).toSorted()
    })
  }
  return { granted, wallets }
})

describeStores("calls that were drawn are settled alike", (database) => {
  layer(Layer.provideMerge(walletStores, database), {
    timeout: "120 seconds",
    excludeTestServices: true
  })((it) => {
    it.effect(
      "whether a batch is an ordinary one, or has a call in it that was settled before",
      () =>
        Effect.gen(function* () {
          const balances = fc.tuple(
            fc.constantFrom(12, 40, 1000, 100_000),
            fc.constantFrom(1, 16, 1000)
          )
          let captures = 0
          for (const [funds, steps] of fc.sample(fc.tuple(balances, batches), {
            numRuns: 25
          })) {
            const plain = yield* play(funds, steps, false)
            assert.deepStrictEqual(plain, yield* play(funds, steps, true))
            captures += plain.wallets
              .flatMap(({ lines }) => lines)
              .filter((it) => it.startsWith("capture")).length
          }
          assert.isAbove(captures, 60, "hardly a call was charged")
          assert.strictEqual(yield* breaches, 0)
        })
    )
  })
})
