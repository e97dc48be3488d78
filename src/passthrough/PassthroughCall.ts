import type { Cause, Effect } from "effect"
import { HttpServerError } from "effect/http"
import type { Readable } from "node:stream"
import type { OpenRoute } from "../catalog/OpenRoutes.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import type { RouteMatch } from "../catalog/UpstreamCatalog.ts"
import type { Credits } from "../domain/Credits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Principal } from "../users/ApiKeys.ts"
import type { SkippedModel } from "./AliasedPlan.ts"
import { errorBody } from "./ErrorBody.ts"
import { toClientHeaders, toUpstreamHeaders, withRetryAdvice } from "./RelayHeaders.ts"
import type { Reached, UpstreamRequest } from "./UpstreamCalls.ts"

/** An open route and the path that goes upstream. */
export type OpenPath = Extract<RouteMatch, { readonly _tag: "Open" }>

/** A call of a client. */
export interface PassthroughCall {
  readonly principal: Principal
  readonly to: OpenPath
  /** With its question mark, or empty. */
  readonly query: string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** Dropped when the response begins: a stream may last for minutes. */
  body: Uint8Array
  readonly traceId: string
  /** The most that the client lets it cost. */
  readonly maxCost?: Credits | undefined
}

/** What the client receives. */
export interface Relayed {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array | Readable
  readonly sandbox: boolean
  /** Id of the receipt, when the call was metered. */
  readonly callId: string | undefined
  /** Of a model that its vendor ends. */
  readonly ending: Ending | undefined
  /** Its cost, when that is known before the response is sent. */
  readonly cost: Credits | undefined
  /** What the spend limit of the key leaves after the hold, if it has one. */
  readonly left: Credits | undefined
  /** Of a call that named an alias: `vendor/model` that did it, and those that did not. */
  readonly by?: { readonly model: string; readonly skipped: ReadonlyArray<SkippedModel> }
}

/** One of the two is called, once: with the response, or with the effect that gets one. */
export interface ForwardHandlers {
  readonly onResponse: (relayed: Relayed) => void
  readonly onRest: (rest: Effect.Effect<Relayed, Problem | StoreUnavailable>) => void
}

/** Why a call is given up: its client left, or the call failed or the service stops, which is not charged. */
export type GivenUp = "left" | "failed"

export const givenUpBy = (cause: Cause.Cause<unknown>): GivenUp =>
  cause.reasons.some(
    (reason) =>
      reason._tag === "Interrupt" && reason.annotations.has(HttpServerError.ClientAbort.key)
  )
    ? "left"
    : "failed"

const noBody = new Uint8Array()

/** Forgets bodies that nobody needs any more, whoever still knows their calls. */
export const dropBodies = (...holders: ReadonlyArray<{ body: Uint8Array } | undefined>): void => {
  for (const holder of holders) if (holder !== undefined) holder.body = noBody
}

/** The request that goes upstream. */
export const requestOf = (
  call: PassthroughCall,
  body: Uint8Array,
  model: string,
  watch: UpstreamRequest["watch"]
): UpstreamRequest => ({
  method: call.to.route.method,
  path: call.to.path,
  query: call.query,
  headers: toUpstreamHeaders(call.headers),
  body,
  model,
  user: call.principal.userId,
  key: call.principal.apiKeyId,
  route: call.to.route,
  watch
})

/** `POST /v1/chat/completions`, as it is listed. */
export const routeName = ({ method, path }: OpenRoute): string => `${method} ${path}`

/** The request of a call that is not metered: the vendor counts it by its route. */
export const plainRequestOf = (call: PassthroughCall, body: Uint8Array): UpstreamRequest =>
  requestOf(call, body, routeName(call.to.route), undefined)

/** What the client receives of a response. */
export const relay = (
  { accountId, response }: Reached,
  callId?: string,
  cost?: Credits,
  {
    ending,
    left
  }: { readonly ending?: Ending | undefined; readonly left?: Credits | undefined } = {}
): Relayed => {
  const { body, status } = response
  const headers = withRetryAdvice(status, toClientHeaders(response.headers))
  return {
    status,
    headers,
    body: status >= 300 && body instanceof Uint8Array ? errorBody(status, headers, body) : body,
    sandbox: accountId === null,
    callId,
    cost,
    left,
    ending
  }
}
