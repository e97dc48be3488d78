import { Context, Option } from "effect"
import { HttpTraceContext } from "effect/http"
import type { Headers } from "effect/http"
import { randomHex } from "../domain/RandomHex.ts"

/** The request's place in a W3C trace: quoted when reporting a problem. Spec, point 6. */
export class RequestTrace extends Context.Service<
  RequestTrace,
  {
    /** 32 hex digits, stored with what the request causes. */
    readonly traceId: string
    /** The header value of the response. */
    readonly traceparent: string
  }
>()("gateway/http/RequestTrace") {}

/** Continues a valid incoming `traceparent`, else begins a trace. Contract 2. */
export const traceOf = (headers: Headers.Headers): RequestTrace["Service"] => {
  const parent = Option.getOrUndefined(HttpTraceContext.w3c(headers))
  const traceId = parent?.traceId ?? randomHex(32)
  const sampled = parent === undefined || parent.sampled
  return { traceId, traceparent: `00-${traceId}-${randomHex(16)}-${sampled ? "01" : "00"}` }
}
