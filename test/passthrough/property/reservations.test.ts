import { PgClient } from "@effect/sql-pg"
import { assert, describe, it, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import { UserId } from "../../../src/domain/Ids.ts"
import { reservationMillis } from "../../../src/domain/limits/Limits.ts"
import type { CallStart } from "../../../src/passthrough/CallStore.ts"
import { ReservationBook } from "../../../src/passthrough/reservations/ReservationBook.ts"
import type { Drawn, Taken } from "../../../src/passthrough/reservations/ReservationBook.ts"
import type {
  ReservationGrant,
  ReservationStore
} from "../../../src/passthrough/reservations/ReservationStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { describeStores } from "../../support/stores.ts"
import {
  breachesOf,
  callEnd,
  callStart,
  credits,
  newCaller,
  walletStores,
  writeReservations
} from "../../support/wallets.ts"

/** A store with one wallet and one key. */
interface Ledger {
  readonly user: UserId
  readonly write: (taken: Taken) => Effect.Effect<ReadonlyArray<ReservationGrant>>
  readonly wallet: Effect.Effect<{ readonly settled: bigint; readonly held: bigint }>
  /** The reservation of the process. */
  readonly reservation: Effect.Effect<bigint>
  /** The catalog named by the reservation; `undefined`: there is none. */
  readonly catalog: Effect.Effect<number | null | undefined>
  readonly revoke: Effect.Effect<void>
  /** Gives the key a new secret. */
  readonly rotate: Effect.Effect<void>
  readonly breaches: Effect.Effect<number>
}

/** An in-memory version of what `reservations_renew` guarantees. */
const memoryLedger = (balance: number): Ledger => {
  const captured = new Set<string>()
  let settled: bigint = credits(balance)
  let held = 0n
  let isRevoked = false
  let rotations = 0
  let catalog: number | null | undefined
  return {
    user: UserId.make(randomUUID()),
    wallet: Effect.sync(() => ({ settled, held })),
    reservation: Effect.sync(() => held),
    catalog: Effect.sync(() => (held > 0n ? catalog : undefined)),
    revoke: Effect.sync(() => void (isRevoked = true)),
    rotate: Effect.sync(() => void (rotations += 1)),
    breaches: Effect.sync(() => (settled >= held && held >= 0n ? 0 : 1)),
    write: ({ ended, sizes }) =>
      Effect.sync(() =>
        sizes.map(({ catalogId = null, extra, key, needs, rotation }) => {
          catalog = catalogId
          const alive = !isRevoked && rotation === rotations
          for (const { end } of ended) {
            if (captured.has(end.id) || end.captured === 0n) continue
            assert.isTrue(end.captured <= held, "a call without cover")
            captured.add(end.id)
            settled -= end.captured
            held -= end.captured
          }
          const wanted = needs + extra
          const kept = wanted < held ? wanted : held
          const free = settled - kept
          const least = (a: bigint, b: bigint) => (a < b ? a : b)
          const grown = needs > kept ? least(needs - kept, free > 0n ? free : 0n) : 0n
          const growth = alive ? least(wanted - kept - grown, (free - grown) / 16n) : 0n
          held = kept + grown + growth
          return {
            key,
            granted: credits(Number(held) / 1e6),
            available: credits(Number(free) / 1e6),
            alive,
            expiresAt: null,
            left: null
          }
        })
      )
  }
}

type Action =
  | { readonly do: "draw"; readonly amount: number; readonly isOld: boolean }
  | { readonly do: "close"; readonly which: number; readonly part: number }
  | {
      readonly do: "settle"
      readonly outcome: "seen" | "unseen" | "undone"
      readonly between: number
    }
  | { readonly do: "raise"; readonly which: number; readonly more: number }
  | { readonly do: "wait"; readonly millis: number }
  | { readonly do: "skew"; readonly which: "wall" | "monotonic" }
  | { readonly do: "revoke" }
  | { readonly do: "reload"; readonly catalog: number }
  | { readonly do: "rotate" }

const actions = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("draw" as const),
        amount: fc.integer({ min: 0, max: 5 }),
        isOld: fc.nat(3).map((n) => n === 0)
      })
    },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("close" as const),
        which: fc.nat(),
        part: fc.integer({ min: 0, max: 4 })
      })
    },
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("raise" as const),
        which: fc.nat(),
        more: fc.constantFrom(1, 5, 40, 1000)
      })
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant("settle" as const),
        outcome: fc.constantFrom(
          "seen" as const,
          "seen" as const,
          "unseen" as const,
          "undone" as const
        ),
        between: fc.integer({ min: 0, max: 6 })
      })
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("wait" as const),
        millis: fc.integer({ min: 1, max: 150 })
      })
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("skew" as const),
        which: fc.constantFrom("wall" as const, "monotonic" as const)
      })
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("revoke" as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("reload" as const),
        catalog: fc.integer({ min: 1, max: 3 })
      })
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("rotate" as const) }) }
  ),
  { minLength: 30, maxLength: 120 }
)

/** A drawn call. `isRaising`: it waits to be covered for more. */
interface Running {
  readonly start: CallStart
  readonly drawn: Drawn
  amount: bigint
  isRaising: boolean
}

/**
 * Runs the steps and compares the book with the store after each. Returns the number of drawn calls; `outcomes`
 * collects the outcomes of raises.
 */
const play = Effect.fnUntraced(function* (
  ledger: Ledger,
  steps: ReadonlyArray<Action>,
  outcomes: Array<string> = []
) {
  const book = new ReservationBook()
  const running: Array<Running> = []
  const spent = new Map<string, bigint>()
  /** The most that uncharged calls have cost or can still cost. */
  let uncharged = 0n
  const before = (yield* ledger.wallet).settled
  let now = 1000
  /** One clock was set back or the machine slept, and the other clock is right. */
  let late = { monotonic: 0, wall: 0 }
  const moment = () => ({ monotonic: now - late.monotonic, wall: now - late.wall })
  let revokedAt = Infinity
  let rotation = 0
  let rotatedAt = Infinity
  let count = 0
  let catalogId = 1

  /** `isOld`: uses the previous secret, which the process still has in its cache. */
  const draw = (amount: number, isOld = false) => {
    const known = Math.max(0, rotation - (isOld ? 1 : 0))
    const start = { ...callStart(ledger.user, amount), rotation: known, catalogId }
    const drawn = book.draw(start, moment())
    if (drawn === undefined) return
    const isStale = known < rotation && now >= rotatedAt + reservationMillis
    assert.isFalse(isStale, "drawn by a secret that was replaced for long")
    assert.isTrue(now < revokedAt + reservationMillis, "drawn on a key that was revoked for long")
    running.push({ start, drawn, amount: start.amount, isRaising: false })
    uncharged += start.amount
    count += 1
  }
  const close = (which: number, part: number) => {
    const [call] = running.splice(which % Math.max(1, running.length), 1)
    if (call === undefined) return
    const { amount, drawn, start } = call
    const end = callEnd(start, (Number(amount) / 1e6) * (part / 4))
    drawn.close(end)
    spent.set(start.id, end.captured)
    uncharged += end.captured - amount
  }
  /** Raises the amount of a call that is not being raised. */
  const raise = (which: number, more: number) => {
    const call = running[which % Math.max(1, running.length)]
    if (call === undefined || call.isRaising) return
    call.isRaising = true
    const wanted = credits(Number(call.amount) / 1e6 + more)
    call.drawn.raise(wanted, (outcome) => {
      call.isRaising = false
      assert.include(running, call, "a call is covered after its end")
      outcomes.push(outcome)
      if (outcome !== "held") return
      uncharged += wanted - call.amount
      call.amount = wanted
    })
  }
  const callBusily = (calls: number, part: number) => {
    for (let n = 0; n < calls; n += 1) {
      if (n % 3 === 2) close(n, part)
      else draw(1)
      if (n % 4 === 1) raise(n, 30)
    }
  }
  /** The calls whose charge was written, whether or not the process saw the result. */
  const charged = new Set<string>()
  const covered = Effect.fnUntraced(function* () {
    assert.isTrue((yield* ledger.reservation) >= uncharged, "what was drawn is not covered")
    assert.strictEqual(yield* ledger.breaches, 0)
    const named = yield* ledger.catalog
    for (const { start } of named === undefined ? [] : running) {
      // A free call needs no hold
      if (start.amount === 0n) continue
      assert.strictEqual(start.catalogId, named, "the hold names another catalog")
    }
  })
  const write = Effect.fnUntraced(function* (taken: Taken) {
    const grants = yield* ledger.write(taken)
    for (const { end } of taken.ended) {
      if (!charged.has(end.id)) uncharged -= end.captured
      charged.add(end.id)
    }
    return grants
  })
  const settle = Effect.fnUntraced(function* (
    outcome: "seen" | "unseen" | "undone",
    between: number,
    isEnd = false
  ) {
    const taken = book.take(moment(), () => randomUUID(), isEnd)
    if (taken === undefined) return false
    // Calls start and end while the statement runs, before and after it takes effect
    if (!isEnd) callBusily(between, 4)
    const grants = outcome === "undone" ? [] : yield* write(taken)
    yield* covered()
    if (!isEnd) callBusily(between, 2)
    if (outcome === "seen") book.written(taken, grants)
    else book.failed(taken)
    return true
  })

  // Makes the key one with frequent calls
  for (let n = 0; n < 20; n += 1) draw(1)
  for (const step of steps) {
    if (step.do === "draw") draw(step.amount, step.isOld)
    else if (step.do === "close") close(step.which, step.part)
    else if (step.do === "raise") raise(step.which, step.more)
    else if (step.do === "settle") yield* settle(step.outcome, step.between)
    else if (step.do === "wait") now += step.millis
    else if (step.do === "skew") {
      const before = late
      late =
        step.which === "wall"
          ? { ...before, wall: before.wall + 200 }
          : { ...before, monotonic: before.monotonic + 200 }
      now += 200
    } else if (step.do === "reload") {
      catalogId = step.catalog
    } else if (step.do === "rotate") {
      yield* ledger.rotate
      rotation += 1
      rotatedAt = now
    } else {
      yield* ledger.revoke
      revokedAt = Math.min(revokedAt, now)
    }
    yield* covered()
  }
  while (running.length > 0) close(0, 3)
  for (let n = 0; n < 20 && !book.isEmpty; n += 1) yield* settle("seen", 0, true)
  assert.isTrue(book.isEmpty, "something is left in the book")
  const { held, settled } = yield* ledger.wallet
  assert.strictEqual(held, 0n)
  assert.strictEqual(
    before - settled,
    [...spent.values()].reduce((sum, cost) => sum + cost, 0n)
  )
  assert.strictEqual(yield* ledger.breaches, 0)
  return count
})

const balances = fc.constantFrom(0, 3, 40, 1000, 100_000)

describe("calls drawn on a reservation are covered and charged once, whether a result is seen or not", () => {
  it("in memory", () => {
    let drawn = 0
    const outcomes: Array<string> = []
    fc.assert(
      fc.property(balances, actions, (balance, steps) => {
        drawn += Effect.runSync(play(memoryLedger(balance), steps, outcomes))
      }),
      { numRuns: 400 }
    )
    assert.isAbove(drawn, 1000, "hardly a call was drawn")
    const count = (outcome: string) => outcomes.filter((it) => it === outcome).length
    assert.isAbove(count("held"), 100, "hardly a call was raised")
    assert.isAbove(count("balance"), 5, "hardly a raise was refused")
  })
})

const storeLedger = Effect.fnUntraced(function* (balance: number) {
  const sql = yield* PgClient.PgClient
  const wallets = yield* WalletStore
  const services = yield* Effect.context<ReservationStore>()
  const user = yield* newCaller(balance)
  const ledger: Ledger = {
    user,
    wallet: Effect.orDie(Effect.map(wallets.find(user), Option.getOrThrow)),
    reservation: Effect.orDie(
      Effect.map(
        sql<{ held: bigint }>`
          SELECT coalesce(sum(amount), 0)::bigint AS held FROM holds WHERE user_id = ${user}`,
        ([row]) => row!.held
      )
    ),
    catalog: Effect.orDie(
      Effect.map(
        sql<{ catalogId: number | null }>`SELECT catalog_id FROM holds WHERE user_id = ${user}`,
        ([row]) => row?.catalogId
      )
    ),
    revoke: Effect.orDie(
      Effect.flatMap(DateTime.now, (now) =>
        Effect.asVoid(
          sql`UPDATE api_keys SET revoked_at = ${DateTime.toDateUtc(now)} WHERE user_id = ${user}`
        )
      )
    ),
    rotate: Effect.asVoid(
      Effect.orDie(sql`UPDATE api_keys SET rotations = rotations + 1 WHERE user_id = ${user}`)
    ),
    breaches: Effect.orDie(
      Effect.map(breachesOf(user), (it) => it ?? 1).pipe(
        Effect.provideService(PgClient.PgClient, sql)
      )
    ),
    write: ({ ended, sizes }) =>
      writeReservations({ ended, sizes }).pipe(
        Effect.map(({ grants }) => grants),
        Effect.orDie,
        Effect.provideContext(services)
      )
  }
  return ledger
})

describeStores("calls drawn on a reservation", (database) => {
  layer(Layer.provideMerge(walletStores, database), {
    timeout: "120 seconds",
    excludeTestServices: true
  })((it) => {
    it.effect("is covered and charged once", () =>
      Effect.gen(function* () {
        const samples = fc.sample(fc.tuple(balances, actions), { numRuns: 6 })
        for (const [balance, steps] of samples) yield* play(yield* storeLedger(balance), steps)
      })
    )
  })
})
