import { Cause, Clock, Context, Duration, Effect, Exit, Layer, Option, Schema } from "effect"
import { CircuitBreaker } from "effect/persistence"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { pauseAfter } from "./RateLimits.ts"

/** No account of this provider can take a call now: all are paused, or their circuits are open. */
export class NoAccountFree extends Schema.TaggedError<NoAccountFree>()("NoAccountFree", {
  provider: Schema.String,
  /** When the first is free again. */
  retryAfterMillis: Schema.Finite
}) {}

/** What `/metrics` shows of an account. */
export interface AccountState {
  readonly id: string
  readonly provider: Provider
  readonly circuit: "Closed" | "Open" | "HalfOpen"
  /** Left alone because of a rate limit, or of a refused key. */
  readonly pausedMillis: number
}

/** What an answer says of an account's limits. */
export interface AccountAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/**
 * The upstream accounts: which there are, which is to take the next call, which are to be left
 * alone. Keys stay `Redacted`. ADR 0070 and 0071.
 */
export class Accounts extends Context.Service<
  Accounts,
  {
    /** Is there a key for this provider? Otherwise the simulator serves it (contract 7). */
    readonly isConfigured: (provider: Provider) => boolean
    readonly find: (id: string) => Option.Option<AccountSetting>
    /** The accounts that may take a call now, best first; shares of the first place follow the weights. */
    readonly order: (
      provider: Provider
    ) => Effect.Effect<ReadonlyArray<AccountSetting>, NoAccountFree>
    /**
     * As `order`, at once, when every account of the provider that is free has no failure behind it:
     * its calls need no `guard` until one fails. `undefined` otherwise; then no turn is taken.
     */
    readonly healthyOrder: (
      provider: Provider,
      nowMillis: number
    ) => ReadonlyArray<AccountSetting> | undefined
    /** Runs a call through the account's circuit; fails with `CircuitBreakerError` while it is open. */
    readonly guard: <A, E, R>(
      account: AccountSetting,
      call: Effect.Effect<A, E, R>,
      classify: (exit: Exit.Exit<A, E>) => CircuitBreaker.Outcome
    ) => Effect.Effect<A, E | CircuitBreaker.CircuitBreakerError, R>
    /** Heeds 429, refused keys and limits that are used up. */
    readonly observeResponse: (
      account: AccountSetting,
      answer: AccountAnswer
    ) => Effect.Effect<void>
    /** The same, at once. */
    readonly observeAt: (account: AccountSetting, answer: AccountAnswer, nowMillis: number) => void
    readonly states: Effect.Effect<ReadonlyArray<AccountState>>
  }
>()("gateway/vendors/Accounts") {
  static readonly layer = (settings: ReadonlyArray<AccountSetting>) =>
    Layer.effect(Accounts, make(settings)).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))
}

/** Failures in a row that open an account's circuit, and how long it stays open at first. ADR 0071. */
const failuresMax = 5
const openFor = Duration.seconds(10)

interface Seat {
  readonly account: AccountSetting
  /** Smooth weighted round robin: the seat with the highest credit goes first. */
  credit: number
  pausedUntil: number
  /** A failure lies behind it: its calls run through the circuit breaker. */
  degraded: boolean
}

/** The next seat's turn; spreads the shares evenly in time. */
const takeTurn = (seats: ReadonlyArray<Seat>): ReadonlyArray<AccountSetting> => {
  const first = seats[0]
  if (seats.length === 1 && first !== undefined) return [first.account]
  let total = 0
  for (const seat of seats) {
    seat.credit += seat.account.weight
    total += seat.account.weight
  }
  const sorted = [...seats].sort((a, b) => b.credit - a.credit)
  if (sorted[0] !== undefined) sorted[0].credit -= total
  return sorted.map(({ account }) => account)
}

const make = Effect.fnUntraced(function* (settings: ReadonlyArray<AccountSetting>) {
  const breaker = yield* CircuitBreaker.make({
    tripPolicy: CircuitBreaker.consecutive(failuresMax),
    openDuration: openFor
  })
  const seats = settings.map((account): Seat => ({
    account,
    credit: 0,
    pausedUntil: 0,
    degraded: false
  }))
  const byProvider = Map.groupBy(seats, ({ account }) => account.provider)
  const byId = new Map(seats.map((seat) => [seat.account.id, seat]))

  const circuit = (id: string) =>
    Effect.orElseSucceed(breaker.state(id), () => ({ _tag: "Closed" as const }))

  const order = Effect.fnUntraced(function* (provider: Provider) {
    const now = yield* Clock.currentTimeMillis
    const all = byProvider.get(provider) ?? []
    const free = all.filter(({ pausedUntil }) => pausedUntil <= now)
    if (free.length === 0) {
      const soonest = Math.min(...all.map(({ pausedUntil }) => pausedUntil))
      const retryAfterMillis = all.length === 0 ? 0 : soonest - now
      return yield* new NoAccountFree({ provider, retryAfterMillis })
    }
    return takeTurn(free)
  })

  const observeAt = (account: AccountSetting, answer: AccountAnswer, nowMillis: number): void => {
    const pause = pauseAfter(answer.status, answer.headers, nowMillis)
    const seat = byId.get(account.id)
    if (pause > 0 && seat !== undefined) seat.pausedUntil = nowMillis + pause
  }

  return Accounts.of({
    isConfigured: (provider) => byProvider.has(provider),
    find: (id) => Option.map(Option.fromUndefinedOr(byId.get(id)), ({ account }) => account),
    order,
    guard: makeGuard(breaker, byId),
    healthyOrder: (provider, nowMillis) => {
      const free = (byProvider.get(provider) ?? []).filter((seat) => seat.pausedUntil <= nowMillis)
      return free.length === 0 || free.some(({ degraded }) => degraded) ? undefined : takeTurn(free)
    },
    observeAt,
    observeResponse: (account, answer) =>
      Effect.map(Clock.currentTimeMillis, (now) => observeAt(account, answer, now)),
    states: Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.forEach(seats, ({ account, pausedUntil }) =>
        Effect.map(circuit(account.id), ({ _tag }) => ({
          id: account.id,
          provider: account.provider,
          circuit: _tag,
          pausedMillis: Math.max(0, pausedUntil - now)
        }))
      )
    )
  })
})

/**
 * While an account has no failure behind it, its calls run beside the breaker, which costs as much
 * as the rest of a call; the first failure is recorded, and from then on all calls run through it
 * until the circuit is closed and a call has succeeded.
 */
const makeGuard =
  (
    breaker: CircuitBreaker.CircuitBreaker,
    seats: ReadonlyMap<string, Seat>
  ): Accounts["Service"]["guard"] =>
  (account, call, classify) => {
    const seat = seats.get(account.id)
    const through = breaker.execute(call, { key: account.id, classify })
    if (seat === undefined || seat.degraded) {
      return seat === undefined
        ? through
        : Effect.onExit(through, (exit) => {
            if (Exit.isSuccess(exit) && classify(Exit.succeed(exit.value))._tag === "Success")
              seat.degraded = false
            return Effect.void
          })
    }
    return Effect.onExit(call, (exit) => {
      if (
        Exit.isFailure(exit)
          ? Cause.hasInterruptsOnly(exit.cause)
          : classify(exit)._tag !== "Failure"
      ) {
        return Effect.void
      }
      seat.degraded = true
      return Effect.ignore(
        breaker.execute(Effect.void, { key: account.id, classify: () => CircuitBreaker.failure() })
      )
    })
  }
