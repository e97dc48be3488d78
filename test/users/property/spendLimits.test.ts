import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import * as Credits from "../../../src/domain/Credits.ts"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { TaskId, UserId } from "../../../src/domain/Ids.ts"
import { resetAfter } from "../../../src/domain/SpendLimit.ts"
import type { SpendReset } from "../../../src/domain/SpendLimit.ts"
import type { CallStore } from "../../../src/passthrough/CallStore.ts"
import type { ReservationStore } from "../../../src/passthrough/reservations/ReservationStore.ts"
import type { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { KeyChange } from "../../../src/users/ApiKeys.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import type { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callEnd,
  callStart,
  credits,
  drawnCall,
  finish,
  ledgerOf,
  newWallet,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

/** Spend limits of keys (ADR 0160): the store against a model, and in races. */

type Services =
  | PgClient.PgClient
  | CallStore
  | ReservationStore
  | TaskStore
  | UserStore
  | WalletStore

const newKey = Effect.fnUntraced(function* (userId: UserId) {
  const users = yield* UserStore
  const id = ApiKeyId.make(`key_${randomUUID()}`)
  yield* users.createKey({
    id,
    userId,
    keyHash: Buffer.from(id),
    preview: "",
    name: "",
    scopes: ["inference"],
    expiresAt: null,
    now: DateTime.makeUnsafe(0)
  })
  return id
})

const setLimit = Effect.fnUntraced(function* (
  userId: UserId,
  key: ApiKeyId,
  change: Pick<KeyChange, "spendLimit" | "reset">,
  now: DateTime.Utc
) {
  const users = yield* UserStore
  return Option.getOrThrow(yield* users.updateKey(userId, key, change, now)).reserved !== null
})

/** Keys whose counted holds are not the sum of their open holds. */
const drifting = Effect.fnUntraced(function* (userId: UserId) {
  const sql = yield* PgClient.PgClient
  return yield* sql`
    SELECT b.api_key_id, b.held, s.amount FROM key_budgets b JOIN api_keys k ON k.id = b.api_key_id
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(h.amount), 0) AS amount FROM holds h
      WHERE h.api_key_id = b.api_key_id AND h.budget_epoch = b.epoch
    ) s
    WHERE k.user_id = ${userId} AND b.held <> s.amount`
})

interface Hold {
  readonly kind: "task" | "call"
  readonly key: KeyModel
  readonly amount: bigint
  /** The period in which it counts. */
  readonly epoch: number | undefined
}

/** A reservation of one process. */
interface Reserved {
  amount: bigint
  epoch: number | undefined
}

interface KeyModel {
  readonly id: ApiKeyId
  limit: { readonly amount: bigint; readonly reset: SpendReset } | undefined
  epoch: number
  since: DateTime.Utc
  spent: bigint
  held: bigint
  readonly reserved: Map<string, Reserved>
}

const min = (...amounts: ReadonlyArray<bigint>) => amounts.reduce((a, b) => (a < b ? a : b))
const max = (a: bigint, b: bigint) => (a > b ? a : b)

const isOver = ({ limit, since }: KeyModel, now: DateTime.Utc) => {
  const end = limit && resetAfter(limit.reset, since)
  return end !== null && end !== undefined && DateTime.isLessThanOrEqualTo(end, now)
}
const renew = (key: KeyModel, now: DateTime.Utc) => {
  if (isOver(key, now))
    Object.assign(key, { epoch: key.epoch + 1, since: now, spent: 0n, held: 0n })
}
const left = ({ held, limit, spent }: KeyModel) =>
  limit === undefined ? undefined : max(0n, limit.amount - spent - held)
const epochOf = (key: KeyModel) => (key.limit === undefined ? undefined : key.epoch)
const count = (key: KeyModel, epoch: number | undefined, held: bigint, spent: bigint) => {
  if (epoch === undefined || epoch !== key.epoch) return
  key.held += held
  key.spent += spent
}

class Model {
  readonly user: UserId
  readonly keys: ReadonlyArray<KeyModel>
  settled: bigint
  held = 0n
  now = DateTime.makeUnsafe("2026-11-29T21:00:00.000Z")
  readonly open = new Map<string, Hold>()
  constructor(user: UserId, keys: ReadonlyArray<ApiKeyId>, settled: bigint) {
    this.user = user
    this.settled = settled
    this.keys = keys.map((id) => ({
      id,
      limit: undefined,
      epoch: 0,
      since: this.now,
      spent: 0n,
      held: 0n,
      reserved: new Map()
    }))
  }
  key(n: number): KeyModel {
    return this.keys[n % this.keys.length]!
  }
  begin(id: string, hold: Omit<Hold, "epoch">) {
    const epoch = epochOf(hold.key)
    this.open.set(id, { ...hold, epoch })
    this.held += hold.amount
    count(hold.key, epoch, hold.amount, 0n)
  }
  end(id: string, captured: bigint) {
    const { amount, epoch, key } = this.open.get(id)!
    this.open.delete(id)
    this.held -= amount
    this.settled -= captured
    count(key, epoch, -amount, captured)
  }
  /** The reason for which a hold is refused. */
  refusal(key: KeyModel, amount: bigint, more = 0n): "budget" | "balance" | undefined {
    const budget = left(key)
    if (budget !== undefined && amount > budget) return "budget"
    return amount > this.settled - this.held - more ? "balance" : undefined
  }
}

type Act = (model: Model) => Effect.Effect<void, unknown, Services>

/** `undefined`: unchanged; an amount of `null`: no limit. */
const limit =
  (n: number, amount: number | null | undefined, reset: SpendReset | undefined): Act =>
  (model) =>
    Effect.gen(function* () {
      const key = model.key(n)
      const given = typeof amount === "number" ? credits(amount) : amount
      const change = {
        ...(given === undefined ? {} : { spendLimit: given }),
        ...(reset === undefined ? {} : { reset })
      }
      const kept = given === undefined ? key.limit?.amount : (given ?? undefined)
      const isDone = yield* setLimit(model.user, key.id, change, model.now)
      assert.strictEqual(isDone, reset === undefined || kept !== undefined)
      if (!isDone) return
      const next =
        kept === undefined
          ? undefined
          : { amount: kept, reset: reset ?? key.limit?.reset ?? "never" }
      if (next !== undefined && next.reset !== key.limit?.reset) {
        Object.assign(key, { epoch: key.epoch + 1, since: model.now, spent: 0n, held: 0n })
      }
      key.limit = next
    })

const task =
  (n: number, price: number): Act =>
  (model) =>
    Effect.gen(function* () {
      const key = model.key(n)
      const amount = credits(price)
      const { outcome, taskId } = yield* accept(model.user, price, {
        apiKeyId: key.id,
        now: model.now
      })
      renew(key, model.now)
      const refusal = model.refusal(key, amount)
      if (refusal === undefined) {
        model.begin(taskId, { kind: "task", key, amount })
        assert.deepInclude<object>(outcome, { _tag: "Accepted", left: left(key) ?? null })
      } else if (refusal === "budget") {
        const { reset } = key.limit!
        assert.deepInclude<object>(outcome, { _tag: "OverSpendLimit", reset, left: left(key) })
      } else assert.strictEqual(outcome._tag, "BalanceTooLow")
    })

const nth = (model: Model, kind: Hold["kind"], n: number) => {
  const all = [...model.open].filter(([, hold]) => hold.kind === kind)
  return all.length === 0 ? undefined : all[n % all.length]!
}

const taskEnd =
  (n: number, share: number | undefined): Act =>
  (model) =>
    Effect.gen(function* () {
      const found = nth(model, "task", n)
      if (found === undefined) return
      const [id, { amount }] = found
      const captured = share === undefined ? 0n : (amount * BigInt(share)) / 4n
      yield* finish(id as TaskId, undefined, {
        now: model.now,
        outcome:
          share === undefined
            ? { status: "failed", error: { code: 4004, title: "Ended", detail: "" } }
            : { status: "completed", result: [], captured: Credits.make(captured) }
      })
      model.end(id, captured)
    })

/** A batch in which one call ends and calls of several keys begin. Prices differ, so that the order is known. */
const calls =
  (prices: ReadonlyArray<number>, n: number, share: number): Act =>
  (model) =>
    Effect.gen(function* () {
      const found = nth(model, "call", n)
      const starts = prices.map((price, index) =>
        callStart(model.user, price, undefined, model.key(index + n).id)
      )
      const captured = found === undefined ? 0n : (found[1].amount * BigInt(share)) / 4n
      const answer = yield* writeCalls({
        starts,
        ends:
          found === undefined
            ? []
            : [callEnd({ id: found[0], user: model.user }, Number(captured) / 1e6)],
        now: model.now
      })
      starts.forEach(({ key }) =>
        renew(
          model.keys.find(({ id }) => id === key)!,
          model.now
        )
      )
      if (found !== undefined) model.end(found[0], captured)
      const expected = new Map<string, string>()
      for (const start of starts.toSorted((a, b) => (a.amount < b.amount ? -1 : 1))) {
        const key = model.keys.find(({ id }) => id === start.key)!
        const refusal = model.refusal(key, start.amount)
        if (refusal === undefined)
          model.begin(start.id, { kind: "call", key, amount: start.amount })
        else expected.set(start.id, refusal)
      }
      const refused = [...answer.refused].map(
        ([id, why]) => [id, typeof why === "string" ? why : "budget"] as const
      )
      assert.deepStrictEqual(new Map(refused), expected)
      for (const { id, key } of starts) {
        const rest = left(model.keys.find((it) => it.id === key)!)
        assert.strictEqual(answer.left.get(id), rest === undefined ? undefined : Credits.make(rest))
      }
    })

/** A process settles what was drawn for a key, and resizes its reservation. */
const reserve =
  (n: number, process: string, needs: number, extra: number, share: number): Act =>
  (model) =>
    Effect.gen(function* () {
      const key = model.key(n)
      const old = key.reserved.get(process) ?? { amount: 0n, epoch: undefined }
      const charged = (old.amount * BigInt(share)) / 4n
      const start = { ...callStart(model.user, Number(charged) / 1e6), key: key.id }
      const { grants } = yield* writeReservations({
        processId: process,
        now: model.now,
        ended: charged > 0n ? [drawnCall(start, Number(charged) / 1e6)] : [],
        sizes: [
          {
            key: key.id,
            user: model.user,
            hold: randomUUID(),
            rotation: 0,
            needs: credits(needs),
            extra: credits(extra)
          }
        ]
      })
      renew(key, model.now)
      count(key, old.epoch, -old.amount, charged)
      model.settled -= charged
      model.held -= old.amount
      const wanted = credits(needs) + credits(extra)
      const kept = min(wanted, old.amount - charged)
      const isPast = kept > 0n && old.epoch !== epochOf(key)
      const budget = left(key)
      const balance = model.settled - model.held - kept
      const needed = max(0n, credits(needs) - kept)
      // Running calls get all that they need, and future calls a sixteenth of the rest
      const covered = max(
        0n,
        min(needed, balance, ...(budget === undefined || isPast ? [] : [budget - kept]))
      )
      const free = min(
        balance,
        ...(budget === undefined ? [] : [max(0n, budget - (isPast ? 0n : kept))])
      )
      const rest = min(free - covered, balance - needed)
      const grown = covered + (isPast ? 0n : max(0n, min(wanted - kept - covered, rest / 16n)))
      const alive = !isPast && (budget === undefined || kept <= budget)
      assert.deepInclude(grants[0], { granted: Credits.make(kept + grown), alive })
      const epoch = isPast ? old.epoch : epochOf(key)
      key.reserved.set(process, { amount: kept + grown, epoch })
      model.held += kept + grown
      count(key, epoch, kept + grown, 0n)
    })

const wait =
  (hours: number): Act =>
  (model) =>
    Effect.sync(() => {
      model.now = DateTime.add(model.now, { hours })
    })

/** The actions of a process whose clock is slow. */
const late =
  (minutes: number, act: Act): Act =>
  (model) =>
    Effect.suspend(() => {
      const { now } = model
      model.now = DateTime.subtract(now, { minutes })
      return Effect.tap(act(model), () => Effect.sync(() => void (model.now = now)))
    })

/** The displayed figures, and what the counters consist of. */
const compare = Effect.fnUntraced(function* (model: Model) {
  const users = yield* UserStore
  for (const key of model.keys) {
    const row = Option.getOrThrow(yield* users.findKey(Option.none(), key.id, model.now))
    const isCounted = key.limit !== undefined && !isOver(key, model.now)
    assert.deepStrictEqual(
      [row.spendLimit, row.spendReset, row.spent, row.held],
      [
        key.limit === undefined ? null : Credits.make(key.limit.amount),
        key.limit?.reset ?? null,
        Credits.make(isCounted ? key.spent : 0n),
        Credits.make(isCounted ? key.held : 0n)
      ]
    )
  }
  assert.deepStrictEqual(yield* drifting(model.user), [])
  assert.strictEqual(yield* breachesOf(model.user), 0)
})

const price = fc.constantFrom(0, 0.000001, 1, 7.5, 13.4, 50)
const share = fc.constantFrom(0, 1, 3, 4)
const at = fc.nat({ max: 8 })
const reset = fc.constantFrom<SpendReset>("daily", "weekly", "monthly", "never")
const held = fc.oneof(
  fc.tuple(at, price).map((it) => task(...it)),
  fc
    .tuple(fc.uniqueArray(price, { maxLength: 5 }), at, share)
    .map(([prices, n, part]) => calls(prices, n, part)),
  fc
    .tuple(at, fc.constantFrom("prc_one", "prc_two"), fc.nat(9), fc.nat(30), share)
    .map((it) => reserve(...it))
)
const act = fc.oneof(
  { weight: 12, arbitrary: held },
  {
    weight: 4,
    arbitrary: fc.tuple(at, fc.option(share, { nil: undefined })).map((it) => taskEnd(...it))
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        at,
        fc.constantFrom(undefined, null, 0, 20, 60, 60.000001, 200),
        fc.option(reset, { nil: undefined, freq: 2 })
      )
      .map((it) => limit(...it))
  },
  { weight: 2, arbitrary: fc.constantFrom(1, 3, 26, 24 * 8, 24 * 35).map(wait) },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(1, 200), held).map((it) => late(...it)) }
)

describeLive(
  "spend limits",
  walletStores,
  (it, store) => {
    it.effect(
      "count as the model does, after every step of any sequence",
      () =>
        Effect.gen(function* () {
          const run = Effect.runPromiseWith(yield* Effect.context<Services>())
          const play = Effect.fnUntraced(function* (acts: ReadonlyArray<Act>) {
            const user = yield* newWallet(400)
            const model = new Model(user, [yield* newKey(user), yield* newKey(user)], credits(400))
            yield* limit(0, 60, "daily")(model)
            for (const act of acts) {
              yield* act(model)
              yield* compare(model)
            }
          })
          yield* Effect.promise(() =>
            fc.assert(
              fc.asyncProperty(fc.array(act, { minLength: 10, maxLength: 40 }), (acts) =>
                run(play(acts))
              ),
              { numRuns: store === "embedded" ? 25 : 15, endOnFailure: true }
            )
          )
        }),
      120_000
    )

    it.effect("keep both changes if an amount and a reset are changed at once", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const now = yield* DateTime.now
        const user = yield* newWallet(1000)
        for (let n = 0; n < 20; n += 1) {
          const key = yield* newKey(user)
          yield* setLimit(user, key, { spendLimit: credits(1), reset: "never" }, now)
          const changes = [{ spendLimit: credits(2) }, { reset: "weekly" as const }]
          yield* Effect.forEach(
            n % 2 === 0 ? changes : changes.toReversed(),
            (change) => setLimit(user, key, change, now),
            { concurrency: "unbounded" }
          )
          const row = Option.getOrThrow(yield* users.findKey(Option.none(), key, now))
          assert.deepStrictEqual([row.spendLimit, row.spendReset], [credits(2), "weekly"])
        }
      })
    )

    it.effect(
      "are kept in every race: tasks, calls and reservations of two processes",
      () =>
        Effect.gen(function* () {
          const users = yield* UserStore
          const spendLimit = credits(100)
          const samples = fc.sample(
            fc.array(
              fc.tuple(fc.constantFrom("task", "call", "drawn"), fc.constantFrom(1, 7.5, 13.4, 40)),
              {
                minLength: 20,
                maxLength: 40
              }
            ),
            { numRuns: store === "postgres" ? 12 : 3 }
          )
          for (const lives of samples) {
            const user = yield* newWallet(1000)
            const [key, other] = [yield* newKey(user), yield* newKey(user)]
            const now = yield* DateTime.now
            yield* setLimit(user, key, { spendLimit, reset: "monthly" }, now)
            /** The key's outcome of a hold: refused, or ended with this capture. */
            const ended = new Map<string, number>()
            const refused: Array<number> = []
            const live = Effect.fnUntraced(function* (
              [kind, price]: readonly [string, number],
              n: number
            ) {
              const apiKeyId = n % 6 === 5 ? other : key
              const charged = n % 3 === 0 ? 0 : n % 3 === 1 ? price : price / 2
              if (kind === "task") {
                const { outcome, taskId } = yield* accept(user, price, { apiKeyId })
                if (outcome._tag !== "Accepted") return void refused.push(price)
                if (apiKeyId === key) ended.set(taskId, charged)
                const ends = [finish(taskId, charged), finish(taskId, charged)]
                yield* Effect.all(ends, { concurrency: "unbounded" })
              } else if (kind === "call") {
                const start = { ...callStart(user, price), key: apiKeyId }
                if ((yield* writeCalls({ starts: [start] })).refused.size > 0) {
                  return void refused.push(price)
                }
                if (apiKeyId === key) ended.set(start.id, charged)
                const end = callEnd(start, charged)
                yield* Effect.all([writeCalls({ ends: [end] }), writeCalls({ ends: [end] })], {
                  concurrency: "unbounded"
                })
              } else {
                const processId = `prc_${n}`
                const size = () => ({ key: apiKeyId, user, hold: randomUUID() as string })
                const first = { ...size(), rotation: 0, needs: credits(0), extra: credits(price) }
                const { grants } = yield* writeReservations({ processId, sizes: [first] })
                const granted = Number(grants[0]!.granted) / 1e6
                const start = { ...callStart(user, granted), key: apiKeyId }
                if (apiKeyId === key) {
                  ended.set(first.hold, 0)
                  ended.set(start.id, granted / 2)
                }
                yield* writeReservations({
                  processId,
                  sizes: [{ ...size(), rotation: 0, needs: credits(0), extra: credits(0) }],
                  ended: granted > 0 ? [drawnCall(start, granted / 2)] : []
                })
              }
            })
            yield* Effect.forEach(lives, live, { concurrency: "unbounded" })
            // The ledger's numbers are the serial order
            let counted = 0n
            let most = 0n
            let spent = 0n
            for (const { amount, kind, subjectId } of yield* ledgerOf(user)) {
              if (subjectId === null || !ended.has(subjectId)) continue
              if (kind === "hold") counted += amount
              if (kind === "release") counted -= amount
              if (kind === "capture") spent += amount
              if (counted > most) most = counted
              assert.isTrue(counted <= spendLimit, "more was held than the key may spend")
            }
            for (const price of refused) {
              assert.isTrue(
                spendLimit - most < credits(price),
                "a refused hold did not fit at some moment"
              )
            }
            const row = Option.getOrThrow(yield* users.findKey(Option.none(), key, now))
            assert.deepStrictEqual([row.spent, row.held], [Credits.make(spent), credits(0)])
            assert.deepStrictEqual(yield* drifting(user), [])
            assert.strictEqual(yield* breachesOf(user), 0)
          }
        }),
      120_000
    )
  },
  "120 seconds"
)
