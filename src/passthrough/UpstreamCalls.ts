import { Clock, Context, Duration, Effect, Exit, Layer, Metric } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { Problem, problem } from "../domain/Problem.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import { isAccountRefused } from "../vendors/AccountRefusal.ts"
import { Accounts } from "../vendors/Accounts.ts"
import type { AccountState } from "../vendors/Accounts.ts"
import { Upstream } from "../vendors/Upstream.ts"
import type { UpstreamFailure } from "../vendors/Upstream.ts"
import type { UpstreamResponse, UpstreamRequest } from "../vendors/UpstreamExchange.ts"

export type { AccountState } from "../vendors/Accounts.ts"
export type { StreamWatch, UpstreamResponse, UpstreamRequest } from "../vendors/UpstreamExchange.ts"

/** A response and the account that it came from; none in the sandbox. */
export interface Reached {
  readonly response: UpstreamResponse
  readonly accountId: string | null
}

/** One of the two is called, once: with the response, or with the effect that gets one. */
export interface ReachHandlers {
  readonly onResponse: (reached: Reached) => void
  readonly onRest: (rest: Effect.Effect<Reached, Problem>) => void
}

/** Passthrough calls without a response, or refused for the service's own account. */
const troubles = Metric.counter("gateway_upstream_troubles_total", {
  description: "Upstream calls without a response, or refused for the service's own account",
  incremental: true
})

/**
 * Gets a response from one of a provider's accounts. Another account is tried only where the first
 * certainly bought nothing: no byte was sent, or the vendor refused the call for the account's rate,
 * load or key. docs/reference/passthrough.md#accounts-and-failover, ADR 0071.
 */
export class UpstreamCalls extends Context.Service<
  UpstreamCalls,
  {
    readonly isSandbox: (provider: Provider) => boolean
    /** Fails with 5002 (unreachable or broken), 5003 (no account free) or 5004 (time-out). */
    readonly reach: (
      provider: Provider,
      request: UpstreamRequest
    ) => Effect.Effect<Reached, Problem>
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

      const observed = (
        account: AccountSetting,
        call: Effect.Effect<UpstreamResponse, UpstreamFailure>
      ) =>
        accounts
          .guard(account, call, classify)
          .pipe(Effect.tap((response) => accounts.observeResponse(account, forHealth(response))))

      /** `called`: the exit of the first account's call, when it was made already. */
      const reachOne = (
        request: UpstreamRequest,
        [account, ...others]: ReadonlyArray<AccountSetting>,
        called?: Exit.Exit<UpstreamResponse, UpstreamFailure>
      ): Effect.Effect<Reached, Problem> =>
        account === undefined
          ? Effect.fail(busy(0))
          : Effect.flatMap(
              Effect.exit(observed(account, called ?? upstream.send(account, request))),
              (exit) => {
                const outcome = outcomeOf(account, exit)
                if (outcome._tag === "Final") return outcome.result
                const next = others.length === 0 ? outcome.result : reachOne(request, others)
                return Effect.andThen(report(account, outcome.reason), next)
              }
            )

      const reach = (provider: Provider, request: UpstreamRequest) =>
        accounts.isConfigured(provider)
          ? accounts.order(provider).pipe(
              Effect.mapError(({ retryAfterMillis }) => busy(retryAfterMillis)),
              Effect.flatMap((order) => reachOne(request, order))
            )
          : Effect.map(upstream.simulate(provider, request), (response) => ({
              response,
              accountId: null
            }))

      return UpstreamCalls.of({
        isSandbox: (provider) => !accounts.isConfigured(provider),
        reach,
        reachUnsafe: (provider, request, nowMillis, handlers) => {
          const order = accounts.healthyOrder(provider, nowMillis)
          const first = order?.[0]
          if (order === undefined || first === undefined) {
            handlers.onRest(reach(provider, request))
            return () => {}
          }
          return upstream.sendUnsafe(first, request, (exit) => {
            if (Exit.isFailure(exit) || classify(exit)._tag !== "Success") {
              return handlers.onRest(reachOne(request, order, exit))
            }
            // A pause starts with the response that asks for it
            accounts.observeAt(first, forHealth(exit.value), clock.currentTimeMillisUnsafe())
            return handlers.onResponse({ response: exit.value, accountId: first.id })
          })
        },
        accounts: accounts.states
      })
    })
  )
}

/** Some vendors refuse an account with another status than 401. */
const forHealth = (response: UpstreamResponse): UpstreamResponse =>
  isAccountRefused(response) ? { ...response, status: 401 } : response

type Attempt = Exit.Exit<UpstreamResponse, UpstreamFailure | CircuitBreaker.CircuitBreakerError>

/** `Next`: nothing was bought, another account may be tried; `result` is used when there is none. */
type Outcome =
  | { readonly _tag: "Final"; readonly result: Effect.Effect<Reached, Problem> }
  | {
      readonly _tag: "Next"
      readonly reason: string
      readonly result: Effect.Effect<Reached, Problem>
    }

const outcomeOf = (account: AccountSetting, exit: Attempt): Outcome =>
  Exit.match(exit, {
    onSuccess: (response): Outcome => {
      const result = Effect.succeed({ response, accountId: account.id })
      if (isAccountRefused(response)) {
        const reason = `refused the service's own key or payment with HTTP ${response.status}`
        return { _tag: "Next", reason, result: Effect.fail(misconfigured) }
      }
      return response.status === 429 || response.status === 529
        ? { _tag: "Next", reason: `is at its limit (HTTP ${response.status})`, result }
        : { _tag: "Final", result }
    },
    onFailure: (cause): Outcome => {
      const error = cause.reasons.find((reason) => reason._tag === "Fail")?.error
      if (error === undefined)
        return { _tag: "Final", result: Effect.orDie(Effect.failCause(cause)) }
      if (error._tag === "CircuitBreakerError") {
        const millis =
          error.reason._tag === "CircuitOpen" ? Duration.toMillis(error.reason.retryAfter) : 0
        return {
          _tag: "Next",
          reason: "is cut off by its circuit",
          result: Effect.fail(busy(millis))
        }
      }
      const result = Effect.fail(problems[error.kind])
      return error.kind === "unsent"
        ? { _tag: "Next", reason: `cannot be reached (${error.detail})`, result }
        : { _tag: "Final", result: Effect.andThen(report(account, error.detail), result) }
    }
  })

const report = (account: AccountSetting, reason: string) =>
  Effect.andThen(
    Metric.update(Metric.withAttributes(troubles, { account: account.id }), 1),
    Effect.logWarning(`The upstream account ${account.id} ${reason}`)
  )

const problems: { readonly [kind in UpstreamFailure["kind"]]: Problem } = {
  timeout: problem(5004, "The upstream did not answer in time; the call may have been executed"),
  unsent: problem(5002, "The upstream cannot be reached; nothing was sent"),
  broken: problem(5002, "The connection to the upstream broke; the call may have been executed"),
  page: problem(5002, "The upstream answered with a page instead of data")
}

const misconfigured = problem(
  5003,
  "The service's own account with this vendor is not usable now: the operator has been told"
)

const busy = (retryAfterMillis: number): Problem =>
  new Problem({
    code: 5003,
    detail: "Every account with this vendor is at its limit or cut off: try again later",
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterMillis / 1000))
  })

/** What an exit means for the account's health; a client's fault and a rate limit mean nothing. ADR 0071. */
const classify = (exit: Exit.Exit<UpstreamResponse, UpstreamFailure>): CircuitBreaker.Outcome => {
  if (Exit.isFailure(exit)) return CircuitBreaker.failure()
  if (isAccountRefused(exit.value)) return CircuitBreaker.failure()
  const { status } = exit.value
  if (status === 429 || status === 529) return CircuitBreaker.ignored
  return status >= 500 ? CircuitBreaker.failure() : CircuitBreaker.success
}
