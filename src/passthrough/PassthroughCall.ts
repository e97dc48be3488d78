import type { Effect } from "effect"
import type { Readable } from "node:stream"
import type { RouteMatch } from "../catalog/UpstreamCatalog.ts"
import type { Credits } from "../domain/Credits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { Principal } from "../users/ApiKeys.ts"
import { toClientHeaders, toUpstreamHeaders } from "./RelayHeaders.ts"
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
  readonly body: Uint8Array
  readonly traceId: string
}

/** What the client gets. */
export interface Relayed {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Uint8Array | Readable
  readonly sandbox: boolean
  /** Id of the receipt, when the call was metered. */
  readonly callId: string | undefined
  /** What it cost, when that is known before the answer goes out. */
  readonly cost: Credits | undefined
}

/** Who hears of the answer, or what is left to be done for one: one of the two, once. */
export interface ForwardEnd {
  readonly answered: (relayed: Relayed) => void
  readonly otherwise: (rest: Effect.Effect<Relayed, Problem | StoreUnavailable>) => void
}

/** What goes upstream. */
export const requestOf = (
  call: PassthroughCall,
  body: Uint8Array,
  watch: UpstreamRequest["watch"]
): UpstreamRequest => ({
  method: call.to.route.method,
  path: call.to.path,
  query: call.query,
  headers: toUpstreamHeaders(call.headers),
  body,
  watch
})

/** What the client gets of an answer. */
export const relay = (
  { accountId, answer }: Reached,
  callId: string | undefined,
  cost: Credits | undefined
): Relayed => ({
  status: answer.status,
  headers: toClientHeaders(answer.headers),
  body: answer.body,
  sandbox: accountId === null,
  callId,
  cost
})
