import { Cause, Clock, Context, Duration, Effect, Exit, Layer, Option, Schema } from "effect"
import { CircuitBreaker } from "effect/persistence"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { pauseAfter } from "./RateLimits.ts"

/** No account of this provider is available: all are paused. */
export class NoAccountFree extends Schema.TaggedError<NoAccountFree>()("NoAccountFree", {
  provider: Schema.String,
  /** Until the first pause ends. */
  retryAfterMillis: Schema.Finite
}) {}

/** The state of an account in `/metrics`. */
export interface AccountState {
  readonly id: string
  readonly provider: Provider
  readonly circuit: "Closed" | "Open" | "HalfOpen"
  /** Rest of a pause, after a rate limit or a refused key. */
  readonly pausedMillis: number
}

/** The part of a response that may pause an account. */
export interface AccountResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
}

/**
 * The upstream accounts: which is next, which are paused. ADR 0070 and ADR 0071.
 */
export class Accounts extends Context.Service<
  Accounts,
  {
    /** There is a key for this provider; without one the simulator serves it. */
    readonly isConfigured: (provider: Provider) => boolean
    readonly find: (id: string) => Option.Option<AccountSetting>
    /** The accounts that are not paused. The first place is shared by weight. */
    readonly order: (
      provider: Provider
    ) => Effect.Effect<ReadonlyArray<AccountSetting>, NoAccountFree>
    /**
     * As `order`, synchronously. `undefined` when an available account is degraded, or none is
     * available: then use `order` and `guard`. Calls to healthy accounts need no `guard`.
     */
    readonly healthyOrder: (
      provider: Provider,
      nowMillis: number
    ) => ReadonlyArray<AccountSetting> | undefined
    /**
     * Runs a call through the account's circuit breaker; fails with `CircuitBreakerError` while it
     * is open.
     */
    readonly guard: <A, E, R>(
      account: AccountSetting,
      call: Effect.Effect<A, E, R>,
      classify: (exit: Exit.Exit<A, E>) => CircuitBreaker.Outcome
    ) => Effect.Effect<A, E | CircuitBreaker.CircuitBreakerError, R>
    /** Pauses the account after a 429, a refused key or an exhausted limit. */
    readonly observeResponse: (
      account: AccountSetting,
      response: AccountResponse
    ) => Effect.Effect<void>
    /** As `observeResponse`, synchronously. */
    readonly observeAt: (
      account: AccountSetting,
      response: AccountResponse,
      nowMillis: number
    ) => void
    readonly states: Effect.Effect<ReadonlyArray<AccountState>>
  }
>()("gateway/vendors/Accounts") {
  static readonly layer = (settings: ReadonlyArray<AccountSetting>) =>
    Layer.effect(Accounts, make(settings)).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))
}

/** Consecutive failures that open the circuit, and how long it stays open at first. ADR 0071. */
const failuresMax = 5
const openFor = Duration.seconds(10)

interface TrackedAccount {
  readonly account: AccountSetting
  /** Smooth weighted round robin: the account with the highest current weight is next. */
  currentWeight: number
  pausedUntil: number
  /** A call has failed: calls run through the circuit breaker until one succeeds. */
  degraded: boolean
}

/** Moves the round robin on and returns the accounts in order. */
const nextOrder = (tracked: ReadonlyArray<TrackedAccount>): ReadonlyArray<AccountSetting> => {
  const first = tracked[0]
  if (tracked.length === 1 && first !== undefined) return [first.account]
  let total = 0
  for (const it of tracked) {
    it.currentWeight += it.account.weight
    total += it.account.weight
  }
  const sorted = [...tracked].sort((a, b) => b.currentWeight - a.currentWeight)
  if (sorted[0] !== undefined) sorted[0].currentWeight -= total
  return sorted.map(({ account }) => account)
}

const make = Effect.fnUntraced(function* (settings: ReadonlyArray<AccountSetting>) {
  const breaker = yield* CircuitBreaker.make({
    tripPolicy: CircuitBreaker.consecutive(failuresMax),
    openDuration: openFor
  })
  const tracked = settings.map((account): TrackedAccount => ({
    account,
    currentWeight: 0,
    pausedUntil: 0,
    degraded: false
  }))
  const byProvider = Map.groupBy(tracked, ({ account }) => account.provider)
  const byId = new Map(tracked.map((it) => [it.account.id, it]))

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
    return nextOrder(free)
  })

  const observeAt = (
    account: AccountSetting,
    response: AccountResponse,
    nowMillis: number
  ): void => {
    const pauseMillis = pauseAfter(response.status, response.headers, nowMillis)
    const found = byId.get(account.id)
    if (pauseMillis > 0 && found !== undefined) found.pausedUntil = nowMillis + pauseMillis
  }

  return Accounts.of({
    isConfigured: (provider) => byProvider.has(provider),
    find: (id) => Option.map(Option.fromUndefinedOr(byId.get(id)), ({ account }) => account),
    order,
    guard: makeGuard(breaker, byId),
    healthyOrder: (provider, nowMillis) => {
      const free = (byProvider.get(provider) ?? []).filter((it) => it.pausedUntil <= nowMillis)
      return free.length === 0 || free.some(({ degraded }) => degraded)
        ? undefined
        : nextOrder(free)
    },
    observeAt,
    observeResponse: (account, response) =>
      Effect.map(Clock.currentTimeMillis, (now) => observeAt(account, response, now)),
    states: Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.forEach(tracked, ({ account, pausedUntil }) =>
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
 * The circuit breaker costs as much as the rest of a call, so a healthy account bypasses it. Its first
 * failure is recorded; then all calls run through the breaker until the circuit is closed and a call
 * has succeeded.
 */
const makeGuard =
  (
    breaker: CircuitBreaker.CircuitBreaker,
    tracked: ReadonlyMap<string, TrackedAccount>
  ): Accounts["Service"]["guard"] =>
  (account, call, classify) => {
    const found = tracked.get(account.id)
    const through = breaker.execute(call, { key: account.id, classify })
    if (found === undefined) return through
    if (found.degraded) {
      return Effect.onExit(through, (exit) => {
        if (Exit.isSuccess(exit) && classify(Exit.succeed(exit.value))._tag === "Success") {
          found.degraded = false
        }
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
      found.degraded = true
      return Effect.ignore(
        breaker.execute(Effect.void, { key: account.id, classify: () => CircuitBreaker.failure() })
      )
    })
  }
