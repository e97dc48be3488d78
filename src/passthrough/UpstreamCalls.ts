import { Clock, Context, Effect, Exit, Layer, Result } from "effect"
import { randomUUID } from "node:crypto"
import type { SkipReason } from "../domain/Candidate.ts"
import { Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { Hints } from "../process/Hints.ts"
import { accountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import type { AccountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import { Accounts } from "../vendors/accounts/Accounts.ts"
import type { AccountState, NoAccountFree } from "../vendors/accounts/Accounts.ts"
import { Upstream } from "../vendors/upstream/Upstream.ts"
import type { UpstreamFailure } from "../vendors/upstream/Upstream.ts"
import type { UpstreamResponse, UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"
import { AccountAffinity } from "./AccountAffinity.ts"
import type { Binding } from "./AccountAffinity.ts"
import { shareChanges } from "./AccountHints.ts"
import { digestOf } from "./RequestDigest.ts"
import { report } from "./UpstreamTroubles.ts"

export type { AccountState } from "../vendors/accounts/Accounts.ts"
export type { UpstreamResponse, UpstreamRequest }

/** A response and the account that it came from; none in the sandbox. */
export interface Reached {
  readonly response: UpstreamResponse
  readonly accountId: string | null
}

/** One of the two is called, once: with the response, or with the effect that gets one. */
export interface ReachHandlers {
  readonly onResponse: (reached: Reached) => void
  readonly onRest: (rest: Effect.Effect<Reached, Problem | StoreUnavailable>) => void
}

/**
 * Gets a response from one of a provider's accounts. Another account is tried only where the first
 * certainly bought nothing: no byte was sent, or the vendor refused the call for the account's rate,
 * load or key. docs/reference/passthrough.md#accounts-and-failover, ADR 0132.
 */
export class UpstreamCalls extends Context.Service<
  UpstreamCalls,
  {
    readonly isSandbox: (provider: Provider) => boolean
    /** Fails with 1203 (rate used up), 5002 (unreachable or broken), 5003 (no account usable) or 5004. */
    readonly reach: (
      provider: Provider,
      request: UpstreamRequest
    ) => Effect.Effect<Reached, Problem | StoreUnavailable>
    /** The same for a caller that is no fiber. Returns what aborts the call. Never throws. */
    readonly reachUnsafe: (
      provider: Provider,
      request: UpstreamRequest,
      nowMillis: number,
      handlers: ReachHandlers
    ) => () => void
    readonly accounts: Effect.Effect<ReadonlyArray<AccountState>>
  }
>()("gateway/passthrough/UpstreamCalls") {
  static readonly layer = Layer.effect(
    UpstreamCalls,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const upstream = yield* Upstream
      const clock = yield* Clock.Clock
      const affinity = yield* AccountAffinity
      const observe = observeWith(accounts, clock)
      shareChanges(accounts, yield* Hints, clock)
      const reachOne = reachWith(accounts, upstream, clock, observe)

      const reachAt = (
        provider: Provider,
        request: UpstreamRequest,
        among: ReadonlyArray<AccountSetting> | undefined
      ) =>
        Effect.suspend(() => {
          const order = accounts.order(provider, request, clock.currentTimeMillisUnsafe(), among)
          return Result.isFailure(order)
            ? Effect.fail(refused(order.failure))
            : reachOne(request, order.success)
        })

      const reachBound = (provider: Provider, request: UpstreamRequest, binding: Binding) =>
        binding._tag === "Asked"
          ? Effect.flatMap(binding.among, (among) => reachAt(provider, request, among))
          : reachAt(provider, request, binding.among)

      const reach = (
        provider: Provider,
        request: UpstreamRequest
      ): Effect.Effect<Reached, Problem | StoreUnavailable> =>
        accounts.isConfigured(provider)
          ? Effect.suspend(() =>
              reachBound(provider, request, affinity.bindingOf(provider, request))
            )
          : Effect.map(upstream.simulate(provider, request), (response) => ({
              response,
              accountId: null
            }))

      return UpstreamCalls.of({
        isSandbox: (provider) => !accounts.isConfigured(provider),
        reach,
        reachUnsafe: (provider, request, nowMillis, handlers) => {
          if (!accounts.isConfigured(provider)) {
            handlers.onRest(reach(provider, request))
            return () => {}
          }
          const binding = affinity.bindingOf(provider, request)
          if (binding._tag === "Asked") {
            handlers.onRest(reachBound(provider, request, binding))
            return () => {}
          }
          const order = accounts.order(provider, request, nowMillis, binding.among)
          const all = Result.isSuccess(order) ? order.success : none
          const [first] = all
          if (
            first === undefined ||
            !accounts.admits(first, request, digestOf(request), nowMillis)
          ) {
            handlers.onRest(reachAt(provider, request, binding.among))
            return () => {}
          }
          return upstream.sendUnsafe(first, request, (exit) => {
            if (Exit.isFailure(exit) || isNext(exit.value)) {
              return handlers.onRest(reachOne(request, all, exit))
            }
            // A pause starts with the response that asks for it
            observe(first, request, exit)
            return handlers.onResponse({ response: exit.value, accountId: first.id })
          })
        },
        accounts: accounts.states
      })
    })
  )
}

const none: ReadonlyArray<AccountSetting> = []

/** What an exit means for its account and model. */
const observeWith =
  (accounts: Accounts["Service"], clock: Clock.Clock) =>
  (account: AccountSetting, request: UpstreamRequest, exit: Attempt): void => {
    const now = clock.currentTimeMillisUnsafe()
    if (Exit.isSuccess(exit)) accounts.observe(account, request, exit.value, now)
    switch (healthOf(exit)) {
      case "succeeded":
        return accounts.succeeded(account, request)
      case "failed":
        return accounts.failed(account, request, digestOf(request)(), now)
      // No request is the cause, so each counts, and for everyone
      case "unreachable":
        return accounts.failed(account, { ...request, user: null }, randomUUID(), now)
    }
  }

/**
 * Sends to the first account that admits the call, and to the next one while nothing was executed.
 * `called`: the exit of the first account's call, when it was made already.
 */
const reachWith = (
  accounts: Accounts["Service"],
  upstream: Upstream["Service"],
  clock: Clock.Clock,
  observe: ReturnType<typeof observeWith>
) => {
  const reachOne = (
    request: UpstreamRequest,
    [account, ...others]: ReadonlyArray<AccountSetting>,
    called?: Attempt,
    before?: NextOutcome
  ): Effect.Effect<Reached, Problem> =>
    Effect.suspend(() => {
      if (account === undefined) return before?.result ?? Effect.fail(broken(0))
      const now = clock.currentTimeMillisUnsafe()
      if (called === undefined && !accounts.admits(account, request, digestOf(request), now)) {
        return reachOne(request, others, undefined, before)
      }
      return Effect.flatMap(Effect.exit(called ?? upstream.send(account, request)), (exit) => {
        observe(account, request, exit)
        const outcome = outcomeOf(account, request, exit)
        if (outcome._tag === "Final") return outcome.result
        // The vendor's own word about its rate is worth more than a later failure
        const kept = before?.isRate === true && !outcome.isRate ? before : outcome
        const next = reachOne(request, others, undefined, kept)
        return report(account, outcome.reason, outcome.refusal).pipe(Effect.andThen(next))
      })
    })
  return reachOne
}

type Attempt = Exit.Exit<UpstreamResponse, UpstreamFailure>

/** Nothing was bought, another account may be tried; `result` is used when there is none. */
interface NextOutcome {
  readonly _tag: "Next"
  readonly reason: string
  /** A rate of the vendor, which says when to try again. */
  readonly isRate: boolean
  /** The service's own account was refused. */
  readonly refusal?: AccountRefusal
  readonly result: Effect.Effect<Reached, Problem>
}

type Outcome =
  | NextOutcome
  | { readonly _tag: "Final"; readonly result: Effect.Effect<Reached, Problem> }

const isRate = ({ status }: UpstreamResponse): boolean => status === 429 || status === 529

/** As `outcomeOf` says, without making the outcome. */
const isNext = (response: UpstreamResponse): boolean =>
  isRate(response) || accountRefusal(response) !== undefined

const outcomeOf = (account: AccountSetting, { model }: UpstreamRequest, exit: Attempt): Outcome =>
  Exit.match(exit, {
    onSuccess: (response): Outcome => {
      const result = Effect.succeed({ response, accountId: account.id })
      const { status } = response
      const refusal = accountRefusal(response)
      if (refusal !== undefined) {
        const reason = `refused the service's own key, its scope or payment with HTTP ${status}`
        return { _tag: "Next", reason, isRate: false, refusal, result: Effect.fail(misconfigured) }
      }
      const reason = `is at its limit of ${model} (HTTP ${status})`
      return isRate(response)
        ? { _tag: "Next", reason, isRate: true, result }
        : { _tag: "Final", result }
    },
    onFailure: (cause): Outcome => {
      const error = cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (error === undefined)
        return { _tag: "Final", result: Effect.orDie(Effect.failCause(cause)) }
      const result = Effect.fail(problems[error.kind])
      return error.kind === "unsent"
        ? { _tag: "Next", reason: `cannot be reached (${error.detail})`, isRate: false, result }
        : { _tag: "Final", result: Effect.andThen(report(account, error.detail), result) }
    }
  })

const problems: { readonly [kind in UpstreamFailure["kind"]]: Problem } = {
  timeout: problem(5004, "The upstream did not answer in time; the call may have been executed"),
  unsent: problem(5002, "The upstream cannot be reached; nothing was sent"),
  broken: problem(5002, "The connection to the upstream broke; the call may have been executed"),
  page: problem(5002, "The upstream answered with a page instead of data")
}

const misconfigured = problem(
  5003,
  "The service's own account with this vendor is not usable now: the operator has been notified"
)

/**
 * Why a call was not executed by any account, so that another model may be asked; `undefined`: it was, or may
 * have been. docs/reference/aliases.md#when-the-next-model-is-tried
 */
export const skipReasonOf = (
  exit: Exit.Exit<Reached, Problem | StoreUnavailable>
): SkipReason | undefined => {
  if (Exit.isSuccess(exit)) return isRate(exit.value.response) ? "rate_limited" : undefined
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  if (failure === problems.unsent) return "unavailable"
  if (failure === misconfigured) return "account_refused"
  if (failure?._tag !== "Problem") return undefined
  if (failure.code === 1203) return "rate_limited"
  return failure.code === 5003 ? "circuit_open" : undefined
}

const secondsOf = (millis: number): number => Math.max(1, Math.ceil(millis / 1000))

const broken = (retryAfterMillis: number): Problem =>
  new Problem({
    code: 5003,
    detail: "Every account with this vendor is refused or cut off: try again later",
    retryAfterSeconds: secondsOf(retryAfterMillis)
  })

const refused = ({ reason, retryAfterMillis }: NoAccountFree): Problem =>
  reason === "broken"
    ? broken(retryAfterMillis)
    : new Problem({
        code: 1203,
        detail: "The vendor's rate for this model is used up: try again after the wait",
        retryAfterSeconds: secondsOf(retryAfterMillis)
      })

/** What an exit means for the circuit. A rate limit shows that the vendor is there. */
const healthOf = (exit: Attempt): "succeeded" | "failed" | "unreachable" | undefined => {
  if (Exit.isSuccess(exit)) {
    return exit.value.status >= 500 && !isRate(exit.value) ? "failed" : "succeeded"
  }
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  if (failure === undefined) return undefined
  return failure.kind === "unsent" ? "unreachable" : "failed"
}
