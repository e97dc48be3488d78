import type { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import type { SqlClient } from "effect/sql"
import * as fc from "fast-check"
import { createHash } from "node:crypto"
import * as Credits from "../../../src/domain/Credits.ts"
import type { TaskId, UserId } from "../../../src/domain/Ids.ts"
import type { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { UserStore } from "../../../src/users/UserStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callEnd,
  callStart,
  credits,
  finish,
  ledgerOf,
  newCaller,
  newTaskId,
  newWallet,
  walletStores,
  writeCalls
} from "../../support/wallets.ts"

type Services =
  | PgClient.PgClient
  | SqlClient.SqlClient
  | CallStore
  | TaskStore
  | UserStore
  | WalletStore

/** The expected wallet, in micro-credits. */
interface Model {
  settled: bigint
  held: bigint
  entries: number
  readonly open: Map<string, { readonly amount: bigint; readonly kind: "task" | "call" }>
  readonly closed: Map<string, bigint>
  /** The holds of rescued calls, which may still end. */
  readonly lost: Map<string, bigint>
  readonly operations: Array<{ readonly id: string; readonly amount: number }>
  readonly keys: Map<string, { readonly id: TaskId; readonly price: number }>
}

interface Real {
  readonly userId: UserId
  readonly run: <A, E>(effect: Effect.Effect<A, E, Services>) => Promise<A>
}

/** A step: an operation and its effect on the model. After each, store and model must agree. */
class Step implements fc.AsyncCommand<Model, Real> {
  readonly name: string
  readonly can: (model: Model) => boolean
  readonly act: (model: Model, real: Real) => Effect.Effect<void, unknown, Services>
  constructor(name: string, can: Step["can"], act: Step["act"]) {
    this.name = name
    this.can = can
    this.act = act
  }
  check = (model: Readonly<Model>) => this.can(model)
  toString = () => this.name
  run = (model: Model, real: Real) =>
    real.run(
      Effect.gen({ self: this }, function* () {
        yield* this.act(model, real)
        const wallets = yield* WalletStore
        const wallet = Option.getOrThrow(yield* wallets.find(real.userId))
        assert.deepStrictEqual(
          { settled: wallet.settled as bigint, held: wallet.held as bigint },
          { settled: model.settled, held: model.held }
        )
        assert.strictEqual((yield* ledgerOf(real.userId)).length, model.entries)
        assert.strictEqual(yield* breachesOf(real.userId), 0)
      })
    )
}

const always = () => true
const nth = <A>(items: Iterable<A>, n: number): A => {
  const all = [...items]
  return all[n % all.length]!
}
const openOf = (model: Model, kind: "task" | "call") =>
  [...model.open].filter(([, hold]) => hold.kind === kind)

const openHold = (model: Model, id: string, kind: "task" | "call", amount: bigint) => {
  model.open.set(id, { amount, kind })
  model.held += amount
  model.entries += 1
}

const closeHold = (model: Model, id: string, captured: bigint) => {
  const { amount } = model.open.get(id)!
  model.open.delete(id)
  model.closed.set(id, captured)
  model.held -= amount
  model.settled -= captured
  model.entries += (captured > 0n ? 1 : 0) + (captured < amount || amount === 0n ? 1 : 0)
}

const create = (price: number, key: string | undefined) =>
  new Step(`create(${price}, ${key})`, always, (model, { userId }) =>
    Effect.gen(function* () {
      const known = key === undefined ? undefined : model.keys.get(key)
      const now = yield* DateTime.now
      const { outcome, taskId } = yield* accept(userId, price, {
        idempotency: Option.map(Option.fromUndefinedOr(key), (key) => ({
          key,
          requestHash: createHash("sha256").update(String(price)).digest(),
          responseBody: "{}",
          since: DateTime.subtract(now, { hours: 24 })
        }))
      })
      if (known !== undefined) {
        assert.deepInclude(outcome, { _tag: "Replayed", cost: credits(known.price) })
      } else if (model.settled - model.held < credits(price)) {
        assert.strictEqual(outcome._tag, "BalanceTooLow")
      } else {
        openHold(model, taskId, "task", credits(price))
        if (key !== undefined) model.keys.set(key, { id: taskId, price })
        assert.deepInclude(outcome, {
          _tag: "Accepted",
          balance: Credits.make(model.settled - model.held)
        })
      }
    })
  )

/** `share` of the price is settled: all, a part, or nothing. `undefined`: a cancel or the deadline. */
const end = (n: number, share: number | undefined, code = 4004) =>
  new Step(
    `end(${n}, ${share ?? code})`,
    (model) => openOf(model, "task").length > 0,
    (model) =>
      Effect.gen(function* () {
        const [id, { amount }] = nth(openOf(model, "task"), n)
        const captured = share === undefined ? 0n : (amount * BigInt(share)) / 4n
        const outcome = yield* finish(id as TaskId, undefined, {
          outcome:
            share === undefined
              ? { status: "failed", error: { code, title: "Ended", detail: "" } }
              : { status: "completed", result: [], captured: Credits.make(captured) }
        })
        assert.strictEqual(outcome._tag, "Finished")
        closeHold(model, id, captured)
      })
  )

const endAgain = (n: number) =>
  new Step(
    `endAgain(${n})`,
    (model) => model.closed.size > 0,
    (model) =>
      Effect.gen(function* () {
        const outcome = yield* finish(nth(model.closed.keys(), n) as TaskId, 0)
        assert.strictEqual(outcome._tag, "Fenced")
      })
  )

/**
 * One batch of passthrough calls: the n-th open call ends at `cost`, the last closed one ends again, and calls of these
 * prices start. Settlements free credits for holds; the smallest holds come first.
 */
const calls = (prices: ReadonlyArray<number>, n: number, cost: number) =>
  new Step(`calls(${prices.join()}, ${n}, ${cost})`, always, (model, { userId }) =>
    Effect.gen(function* () {
      const open = openOf(model, "call")
      const ending = open.length === 0 ? undefined : nth(open, n)
      const again = [...model.closed.keys()].at(-1)
      const starts = prices.map((price) => callStart(userId, price))
      const { refused } = yield* writeCalls({
        starts,
        ends: [ending?.[0], again]
          .filter((id) => id !== undefined)
          .map((id) => callEnd({ id, user: userId }, cost))
      })
      if (ending !== undefined) {
        const [id, { amount }] = ending
        closeHold(model, id, credits(cost) < amount ? credits(cost) : amount)
      }
      const inOrder = starts.toSorted((a, b) => (a.amount < b.amount ? -1 : 1))
      const tooMuch = inOrder.filter(({ amount, id }) => {
        if (model.settled - model.held < amount) return true
        openHold(model, id, "call", amount)
        return false
      })
      // Of equal prices it may be either one
      const pricesOf = (ids: Iterable<string>) =>
        [...ids].map((id) => starts.find((it) => it.id === id)?.amount).toSorted()
      assert.deepStrictEqual(pricesOf(refused.keys()), pricesOf(tooMuch.map(({ id }) => id)))
      assert.isTrue([...refused.values()].every((why) => why === "balance"))
      for (const { id } of tooMuch) {
        if (refused.has(id)) continue
        // The model opened the other call with the same price
        const twin = [...refused.keys()].find((it) => model.open.has(it))!
        model.open.set(id, model.open.get(twin)!)
        model.open.delete(twin)
      }
    })
  )

/** Another process considers the n-th open call dead. */
const rescue = (n: number) =>
  new Step(
    `rescue(${n})`,
    (model) => openOf(model, "call").length > 0,
    (model, { userId }) =>
      Effect.gen(function* () {
        const [id, { amount }] = nth(openOf(model, "call"), n)
        yield* writeCalls({ ends: [{ ...callEnd({ id, user: userId }, 0), outcome: "lost" }] })
        model.open.delete(id)
        model.lost.set(id, amount)
        model.held -= amount
        model.entries += 1
      })
  )

/** A rescued call ends after all, `times` times in total. It is charged once, whatever the wallet has. */
const endLate = (n: number, cost: number, times: number) =>
  new Step(
    `endLate(${n}, ${cost}, ${times})`,
    (model) => model.lost.size > 0,
    (model, { userId }) =>
      Effect.gen(function* () {
        const [id, amount] = nth(model.lost, n)
        for (let time = 0; time < times; time += 1) {
          yield* writeCalls({ ends: [callEnd({ id, user: userId }, cost)] })
        }
        const charged = credits(cost) < amount ? credits(cost) : amount
        if (charged === 0n) return
        model.settled -= charged
        model.entries += 1
        model.lost.delete(id)
        model.closed.set(id, charged)
      })
  )

const addTo = (kind: "top_up" | "adjustment", amount: number, repeat: number | undefined) =>
  new Step(
    `${kind}(${amount}, ${repeat})`,
    (model) => repeat === undefined || model.operations.length > 0,
    (model, { userId }) =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const before = repeat === undefined ? undefined : nth(model.operations, repeat)
        const id = before?.id ?? `${kind}:${userId}:${model.operations.length}:${newTaskId()}`
        const outcome = yield* wallets.add({
          userId,
          kind: id.startsWith("top_up") ? "top_up" : "adjustment",
          amount: credits(before?.amount ?? amount),
          operationId: id,
          note: null,
          traceId: "",
          now: yield* DateTime.now
        })
        if (before !== undefined) assert.deepInclude(outcome, { _tag: "Added", repeated: true })
        else if (amount < 0 && model.settled + credits(amount) < model.held) {
          assert.strictEqual(outcome._tag, "BelowHeld")
        } else {
          assert.deepInclude(outcome, { _tag: "Added", repeated: false })
          model.settled += credits(amount)
          model.entries += 1
          model.operations.push({ id, amount })
        }
      })
  )

const price = fc.constantFrom(0, 0.000001, 1, 7.5, 13.4, 50, 300)
const at = fc.nat({ max: 20 })
const steps = [
  fc.tuple(price, fc.constantFrom(undefined, undefined, "a", "b")).map(([p, k]) => create(p, k)),
  fc.tuple(at, fc.constantFrom(0, 1, 3, 4, 4)).map(([n, share]) => end(n, share)),
  fc.tuple(at, fc.constantFrom(4004, 4005)).map(([n, code]) => end(n, undefined, code)),
  at.map(endAgain),
  fc
    .tuple(fc.array(price, { maxLength: 4 }), at, price)
    .map(([prices, n, cost]) => calls(prices, n, cost)),
  at.map(rescue),
  fc.tuple(at, price, fc.constantFrom(1, 2)).map((late) => endLate(...late)),
  fc.constantFrom(0.01, 5, 100).map((amount) => addTo("top_up", amount, undefined)),
  fc.constantFrom(-0.01, -25, -400, 3).map((amount) => addTo("adjustment", amount, undefined)),
  at.map((n) => addTo("top_up", 0, n))
]

describeLive("the wallet", walletStores, (it, store) => {
  it.effect(
    "keeps every invariant after every step of any sequence",
    () =>
      Effect.gen(function* () {
        const context = yield* Effect.context<Services>()
        const run: Real["run"] = Effect.runPromiseWith(context)
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.commands(steps, { maxCommands: 40 }), async (commands) => {
              const userId = await run(newCaller(100))
              const setup = () => ({
                model: {
                  settled: credits(100) as bigint,
                  held: 0n,
                  entries: 1,
                  open: new Map(),
                  closed: new Map(),
                  lost: new Map(),
                  operations: [],
                  keys: new Map()
                },
                real: { userId, run }
              })
              await fc.asyncModelRun(setup, commands)
            }),
            { numRuns: store === "embedded" ? 60 : 15, endOnFailure: true }
          )
        )
      }),
    120_000
  )

  it.effect("ends every race of clients in the state of some serial order", () =>
    Effect.gen(function* () {
      const picks = fc.sample(
        fc.array(fc.constantFrom(1, 7.5, 13.4, 40), { minLength: 12, maxLength: 30 }),
        { numRuns: store === "postgres" ? 12 : 3 }
      )
      for (const prices of picks) {
        const userId = yield* newWallet(100)
        const life = Effect.fnUntraced(function* (price: number, n: number) {
          const { outcome, taskId } = yield* accept(userId, price)
          if (outcome._tag !== "Accepted") return { price, taskId, accepted: false, charged: 0 }
          if (n % 5 === 0) yield* Effect.yieldNow
          const charged = n % 3 === 0 ? 0 : n % 3 === 1 ? price : price / 2
          // The owner and a cancel race to end it
          const ends = yield* Effect.all([finish(taskId, charged), finish(taskId, undefined)], {
            concurrency: "unbounded"
          })
          assert.strictEqual(ends.filter((it) => it._tag === "Finished").length, 1)
          const won = ends[0]?._tag === "Finished"
          return { price, taskId, accepted: true, charged: won ? charged : 0 }
        })
        const lives = yield* Effect.forEach(prices, life, { concurrency: "unbounded" })
        const entries = yield* ledgerOf(userId)
        // The ledger's numbers are the serial order: each entry follows from the previous one
        let available = 0n
        let lowest = entries[0]!.settledAfter as bigint
        entries.forEach((entry, index) => {
          assert.strictEqual(entry.seq, BigInt(index + 1))
          if (entry.kind === "hold") assert.isTrue(available >= entry.amount)
          available = entry.settledAfter - entry.heldAfter
          if (available < lowest) lowest = available
        })
        for (const { accepted, charged, price, taskId } of lives) {
          const mine = entries.filter((entry) => entry.subjectId === taskId)
          if (!accepted) {
            assert.isEmpty(mine)
            assert.isTrue(lowest < credits(price), "a refused hold did not fit at some moment")
          } else {
            const captured = mine.find(({ kind }) => kind === "capture")?.amount ?? 0n
            assert.strictEqual(captured, credits(charged) as bigint)
          }
        }
        const total = lives.reduce((sum, it) => sum + credits(it.charged), 0n)
        assert.deepInclude(Option.getOrThrow(yield* (yield* WalletStore).find(userId)), {
          settled: Credits.make(credits(100) - total),
          held: Credits.zero
        })
        assert.strictEqual(yield* breachesOf(userId), 0)
      }
    })
  )

  it.effect("has no drift in the audit after all this", () =>
    Effect.gen(function* () {
      const wallets = yield* WalletStore
      const now = yield* DateTime.now
      yield* wallets.audit({ after: Option.none(), wallets: 10_000, entries: 10_000, now })
      assert.strictEqual(yield* wallets.drift, 0)
    })
  )
})
