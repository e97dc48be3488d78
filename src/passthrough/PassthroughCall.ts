import type { Effect, Exit } from "effect"
import type { Readable } from "node:stream"
import type { OpenRoute, TokenModel } from "../catalog/OpenRoutes.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import type { RouteMatch } from "../catalog/UpstreamCatalog.ts"
import type { Credits } from "../domain/Credits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Principal } from "../users/ApiKeys.ts"
import type { ClientResponse } from "../users/contents/CallContent.ts"
import type { CallPlan, SkippedModel } from "./CallPlan.ts"
import type { Upload } from "./counted/Upload.ts"
import { errorBody } from "./ErrorBody.ts"
import { toClientHeaders, toUpstreamHeaders, withRetryAdvice } from "./RelayHeaders.ts"
import type { Reached, UpstreamRequest } from "./UpstreamCalls.ts"

/** An open route and the upstream path. */
export type OpenPath = Extract<RouteMatch, { readonly _tag: "Open" }> & {
  /** Another vendor's model to show, by the name that the list of this route has for it: `vendor/model`. */
  readonly listed?: string
}

/** The target of a call. The part of the path after the vendor is the vendor's path. */
export interface CallTarget {
  readonly vendor: string
  /** Whether the path is shared by the clients of several vendors: directly below `/v1`, not below a vendor. */
  readonly isShared: boolean
  /** As the client sent it. */
  readonly path: string
  /** With its question mark, or empty; without the client's credentials. */
  readonly query: string
}

type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** A client's request, whose parts the HTTP layer reads when the call needs them. */
export interface CallRequest {
  readonly method: string
  readonly target: CallTarget
  /** Without the headers for this service. */
  readonly headers: HeaderValues
  readonly traceId: string
  /** Fails with 2001 if the header is not an amount. */
  readonly maxCost: Exit.Exit<Credits | undefined, Problem>
  /**
   * Authenticates the caller. For a metered route, a key that was valid before may come from a cache: its hold checks
   * it again. Fails with 1001 to 1004, 1006, 1007 or 1201.
   */
  readonly authenticate: (
    to: Pick<OpenPath, "catalog" | "route">
  ) => Effect.Effect<Principal, Problem | StoreUnavailable>
  /** Fails once the key or session that was authenticated has ended. */
  readonly mayStill: Effect.Effect<unknown, Problem | StoreUnavailable>
  /** Removes the key from the cache. */
  readonly forgetKey: () => void
  /** Serves background responses, and finds those that a call continues. */
  readonly responses: ResponseCalls
  /**
   * Reads the body, or the beginning of a form with a file, and passes it on, within this process's limits for large
   * bodies. Fails with 2002, 2003 or 2004.
   */
  readonly withBody: <A>(
    route: OpenRoute,
    principal: Principal,
    use: (body: CallBody) => Effect.Effect<A, Problem | StoreUnavailable>
  ) => Effect.Effect<A, Problem | StoreUnavailable>
}

/** A body that was read, or a form that is streamed to the vendor. */
export interface CallBody {
  readonly bytes: Uint8Array
  readonly upload?: Upload
}

/** The earlier response that a call continues. */
export interface PreviousResponse {
  /** Its id at the gateway, and at the vendor. */
  readonly id: string
  readonly vendorId: string
  /** As in `vendor_attempts`: `<adapter>@<account id>`, or the simulator's id. */
  readonly attemptAccount: string
}

/** The operations of calls on background responses, which are tasks. docs/reference/background.md */
export interface ResponseCalls {
  /** Fails with 2001 if the user has no such response or later requests cannot continue it. */
  readonly previous: (
    principal: Principal,
    id: string
  ) => Effect.Effect<PreviousResponse, Problem | StoreUnavailable>
  /** Creates the task of a planned call. Fails as every create does. */
  readonly create: (call: BackgroundCall) => Effect.Effect<Relayed, Problem | StoreUnavailable>
  /** The first response to a repeated call whose model is no longer sold. Fails with `refusal` if there is none. */
  readonly replay: (
    call: Pick<BackgroundCall, "call" | "mayStill">,
    name: string,
    refusal: Problem
  ) => Effect.Effect<Relayed, Problem | StoreUnavailable>
}

/** A planned call that will run in the background. */
export interface BackgroundCall {
  readonly call: PassthroughCall
  readonly plan: CallPlan
  readonly model: TokenModel
  /** The account that must run the response; undefined if any account will do. */
  readonly account: string | undefined
  /** Fails once the caller's access has ended, which also ends a running stream. */
  readonly mayStill: CallRequest["mayStill"]
}

/** A client's call after its request was read. */
export interface PassthroughCall {
  readonly principal: Principal
  readonly to: OpenPath
  /**
   * Whether the path is shared by the clients of several vendors, which name other vendors' models as `vendor/model`.
   */
  readonly isShared: boolean
  /** With its question mark, or empty. */
  readonly query: string
  readonly headers: HeaderValues
  /** Dropped when the response begins, because a stream may last for minutes. */
  body: Uint8Array
  /** The form that the call streams; `body` is then empty. */
  readonly upload?: Upload
  readonly traceId: string
  /** The client's maximum cost. */
  readonly maxCost: Credits | undefined
  /** The earlier response that it continues. */
  readonly previous?: PreviousResponse
  /** Whether it may run in the background. */
  readonly mayWait?: boolean
}

/** The response that the client receives. */
export interface Relayed {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array | Readable
  readonly sandbox: boolean
  /** Id of the receipt, if the call was metered. */
  readonly callId: string | undefined
  /** Set for a model that its vendor is ending. */
  readonly ending: Ending | undefined
  /** Its cost, if known before the response is sent. */
  readonly cost: Credits | undefined
  /** Credits left of the key's spend limit after the hold, if it has one. */
  readonly left: Credits | undefined
  /** For a call that named an alias: the `vendor/model` that responded, and the models that were skipped. */
  readonly by: { readonly model: string; readonly skipped: ReadonlyArray<SkippedModel> } | undefined
}

const noBody = new Uint8Array()

/** Drops bodies that are no longer needed, even if something still references their calls. */
export const dropBodies = (...holders: ReadonlyArray<{ body: Uint8Array }>): void => {
  for (const holder of holders) holder.body = noBody
}

/** The upstream request. */
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
  watch,
  ...(call.previous === undefined ? {} : { account: accountOf(call.previous) }),
  ...(call.upload === undefined ? {} : { upload: call.upload })
})

/** The account of an attempt, without its adapter. */
const accountOf = ({ attemptAccount }: PreviousResponse): string =>
  attemptAccount.slice(attemptAccount.indexOf("@") + 1)

/** The name of a route in lists, such as `POST /v1/chat/completions`. */
export const routeName = ({ method, path }: OpenRoute): string => `${method} ${path}`

/** What the client receives in addition to the vendor's response. */
type Extra = Pick<Relayed, "callId" | "cost" | "left" | "ending" | "by">

/** The values of an unmetered call. */
export const unmetered: Extra = {
  callId: undefined,
  cost: undefined,
  left: undefined,
  ending: undefined,
  by: undefined
}

/** The body of a response as the client receives it. */
const shownBody = (
  status: number,
  headers: Record<string, string>,
  body: Relayed["body"]
): Relayed["body"] =>
  status >= 300 && body instanceof Uint8Array ? errorBody(status, headers, body) : body

/** The response for the text that is kept of a call. */
export const clientResponse = ({ response }: Reached): ClientResponse => {
  const headers = toClientHeaders(response.headers)
  const body = shownBody(response.status, headers, response.body)
  return {
    contentType: headers["content-type"],
    body: body instanceof Uint8Array ? body : undefined
  }
}

/** The response as the client receives it. */
export const relay = (
  { accountId, response }: Reached,
  { by, callId, cost, ending, left }: Extra = unmetered
): Relayed => {
  const { body, status } = response
  const headers = withRetryAdvice(status, toClientHeaders(response.headers))
  return {
    status,
    headers,
    body: shownBody(status, headers, body),
    sandbox: accountId === null,
    callId,
    cost,
    left,
    ending,
    by
  }
}
