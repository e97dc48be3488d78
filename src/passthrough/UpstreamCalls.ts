import { Clock, Context, Effect, Exit, Layer, Result, Metric, Option, Schema } from "effect"
import { randomUUID, createHash } from "node:crypto"
import { Catalog } from "../catalog/Catalog.ts"
import { invalid, Problem, problem } from "../domain/Problem.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import type { SkipReason } from "../domain/task/Candidate.ts"
import { Hints } from "../process/signals/Hints.ts"
import { makeSimulator } from "../sandbox/UpstreamSimulator.ts"
import { AccountChange } from "../vendors/accounts/AccountChange.ts"
import { accountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import type { AccountRefusal } from "../vendors/accounts/AccountRefusal.ts"
import { Accounts } from "../vendors/accounts/Accounts.ts"
import type { AccountState, NoAccountFree } from "../vendors/accounts/Accounts.ts"
import { countOperatorFault } from "../vendors/accounts/OperatorFaultsTotal.ts"
import { Upstream } from "../vendors/upstream/Upstream.ts"
import type { UpstreamFailure } from "../vendors/upstream/Upstream.ts"
import type { UpstreamResponse, UpstreamRequest } from "../vendors/upstream/UpstreamExchange.ts"
import { AccountAffinity } from "./AccountAffinity.ts"
import { requestOf } from "./PassthroughCall.ts"
import type { PassthroughCall } from "./PassthroughCall.ts"

export type { AccountState } from "../vendors/accounts/Accounts.ts"
export type { UpstreamResponse, UpstreamRequest }

/** A response and its account; none in the sandbox. */
export interface Reached {
  readonly response: UpstreamResponse
  readonly accountId: string | null
}

/**
 * Gets a response from one of a provider's accounts. Another account is tried only if the first certainly bought
 * nothing: no byte was sent, or the vendor refused the call for the account's rate, load or key.
 * docs/reference/passthrough.md#accounts-and-failover, ADR 0132.
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
    /**
     * The account that must run a background response, as its attempt will name it: the account that holds the
     * continued response, or the data that its key has stored at the vendor. `undefined` for any account. Fails as
     * `reach` does.
     */
    readonly accountFor: (
      call: PassthroughCall
    ) => Effect.Effect<string | undefined, Problem | StoreUnavailable>
    readonly accounts: Effect.Effect<ReadonlyArray<AccountState>>
  }
>()("gateway/passthrough/UpstreamCalls") {
  static readonly layer = Layer.effect(
    UpstreamCalls,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const clock = yield* Clock.Clock
      const affinity = yield* AccountAffinity
      const upstream = yield* Upstream
      const catalog = yield* Catalog
      const simulate = makeSimulator(() => catalog.current().upstream)
      shareChanges(accounts, yield* Hints, clock)
      return UpstreamCalls.of({
        isSandbox: (provider) => !accounts.isConfigured(provider),
        reach: reachWith({ accounts, affinity, clock, simulate, upstream }),
        accountFor: Effect.fnUntraced(function* (call) {
          const { provider } = call.to.route
          if (!accounts.isConfigured(provider)) return call.previous?.attemptAccount
          const request = requestOf(call, call.body, "", undefined)
          if (request.account !== undefined) {
            yield* keeping(accounts, request.account)
            return call.previous?.attemptAccount
          }
          const among = yield* affinity.accountsFor(provider, request)
          return among?.[0] && `openai-responses@${among[0].id}`
        }),
        accounts: accounts.states
      })
    })
  )
}

interface Services {
  readonly accounts: Accounts["Service"]
  readonly affinity: AccountAffinity["Service"]
  readonly clock: Clock.Clock
  /** A response in the vendor's format that needs no account. docs/reference/vendors.md#sandbox */
  readonly simulate: ReturnType<typeof makeSimulator>
  readonly upstream: Upstream["Service"]
}

/** Sends to the first account that admits the call, and to the next one while nothing was executed. */
const reachWith = ({ accounts, affinity, clock, simulate, upstream }: Services) =>
  Effect.fnUntraced(function* (
    provider: Provider,
    request: UpstreamRequest
  ): Effect.fn.Return<Reached, Problem | StoreUnavailable> {
    if (!accounts.isConfigured(provider)) {
      return { response: yield* simulate(provider, request), accountId: null }
    }
    const among =
      request.account === undefined
        ? yield* affinity.accountsFor(provider, request)
        : yield* keeping(accounts, request.account)
    let now = clock.currentTimeMillisUnsafe()
    const order = accounts.order(provider, request, now, among)
    if (Result.isFailure(order)) return yield* refused(order.failure)
    let last: NextOutcome | undefined
    for (const account of order.success) {
      if (!accounts.admits(account, request, digestOf(request), now)) continue
      const exit = yield* Effect.exit(upstream.send(account, request))
      // The client's form was invalid or did not arrive, which is not the vendor's fault
      if (Exit.isFailure(exit) && request.upload?.problem !== undefined) {
        return yield* request.upload.problem
      }
      now = clock.currentTimeMillisUnsafe()
      observe(accounts, account, request, exit, now)
      const outcome = outcomeOf(account, request, exit)
      if (outcome._tag === "Final" || request.upload?.isSpent === true) return yield* outcome.result
      // The vendor's statement about its rate takes precedence over a later failure
      if (last?.isRate !== true || outcome.isRate) last = outcome
      yield* report(account, outcome.reason, outcome.refusal)
    }
    return yield* last?.result ?? broken(0)
  })

const keeping = (accounts: Accounts["Service"], id: string) =>
  Effect.fromResult(
    // An account that was removed from the configuration is known until its jobs are finished, but gets no new calls
    Result.map(
      Result.fromNullishOr(
        accounts.configured().find((account) => account.id === id),
        () => accountLeft
      ),
      (account) => [account]
    )
  )

const accountLeft = invalid([
  {
    pointer: "#/previous_response_id",
    detail: "The vendor account that stores this response has left the configuration"
  }
])

/** Records the effect of an exit on its account and model. */
const observe = (
  accounts: Accounts["Service"],
  account: AccountSetting,
  request: UpstreamRequest,
  exit: Attempt,
  nowMillis: number
): void => {
  if (Exit.isSuccess(exit)) accounts.observe(account, request, exit.value, nowMillis)
  switch (healthOf(exit)) {
    case "succeeded":
      return accounts.succeeded(account, request)
    case "failed":
      return accounts.failed(account, request, digestOf(request)(), nowMillis)
    // Not caused by the request, so each failure counts, and for every caller
    case "unreachable":
      return accounts.failed(account, { ...request, user: null }, randomUUID(), nowMillis)
  }
}

type Attempt = Exit.Exit<UpstreamResponse, UpstreamFailure>

/** Nothing was bought, so another account may be tried; `result` is used if there is none. */
interface NextOutcome {
  readonly _tag: "Next"
  readonly reason: string
  /** Whether the vendor limited the rate; it then says when to try again. */
  readonly isRate: boolean
  /** The service's own account was refused. */
  readonly refusal?: AccountRefusal
  readonly result: Effect.Effect<Reached, Problem>
}

type Outcome =
  | NextOutcome
  | { readonly _tag: "Final"; readonly result: Effect.Effect<Reached, Problem> }

const isRate = ({ status }: UpstreamResponse): boolean => status === 429 || status === 529

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
  timeout: problem(5004, "The upstream did not respond in time; the call may have been executed"),
  unsent: problem(5002, "The upstream cannot be reached; nothing was sent"),
  broken: problem(5002, "The connection to the upstream broke; the call may have been executed"),
  page: problem(5002, "The upstream responded with a page instead of data")
}

const misconfigured = problem(
  5003,
  "The service's own account with this vendor is not usable now: the operator has been notified"
)

/**
 * Why no account executed a call, so that another model may be tried; `undefined` if an account has or may have
 * executed it. docs/reference/aliases.md#when-the-next-model-is-tried
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

/** What an exit means for the circuit. A rate limit shows that the vendor is reachable. */
const healthOf = (exit: Attempt): "succeeded" | "failed" | "unreachable" | undefined => {
  if (Exit.isSuccess(exit)) {
    return exit.value.status >= 500 && !isRate(exit.value) ? "failed" : "succeeded"
  }
  const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
  if (failure === undefined) return undefined
  return failure.kind === "unsent" ? "unreachable" : "failed"
}

/** For a large body only both ends are hashed, because hashing all of it would block the event loop. */
const digestBytes = 64 * 1024

/** A digest that is the same for a repeated request. */
const digestOf =
  ({ body, method, path, query, upload }: UpstreamRequest) =>
  (): string =>
    createHash("sha256")
      // An upload can no longer be read, so each one counts as a different request
      .update(`${method} ${path}${query} ${upload === undefined ? body.length : randomUUID()}\n`)
      .update(body.subarray(0, digestBytes))
      .update(body.subarray(-digestBytes))
      .digest("base64")

/** Passthrough calls without a response, or refused for the service's own account. */
const troubles = Metric.counter("gateway_upstream_troubles_total", {
  description: "Upstream calls without a response, or refused for the service's own account",
  incremental: true
})

/** Counts and logs a call that an account did not execute. With a `refusal`, the operator must repair the account. */
const report = ({ id }: AccountSetting, reason: string, refusal?: AccountRefusal) =>
  Effect.gen(function* () {
    yield* Metric.update(Metric.withAttributes(troubles, { account: id }), 1)
    if (refusal !== undefined) {
      yield* countOperatorFault(id, refusal === "scope" ? "model" : "account")
    }
    yield* Effect.logWarning(`The upstream account ${id} ${reason}`)
  })

const ChangeJson = Schema.fromJsonString(AccountChange)
const decodeChange = Schema.decodeUnknownOption(ChangeJson)
const encodeChange = Schema.encodeSync(ChangeJson)

/** Shares changes of circuits and pauses with all processes. ADR 0178. */
const shareChanges = (
  accounts: Accounts["Service"],
  hints: typeof Hints.Service,
  clock: Clock.Clock
): void => {
  accounts.onChange((change) => hints.publishUnsafe("account", encodeChange(change)))
  hints.subscribe("account", (text) => {
    const change = decodeChange(text)
    if (Option.isSome(change)) accounts.apply(change.value, clock.currentTimeMillisUnsafe())
  })
}
