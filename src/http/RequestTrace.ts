import { Context, Option } from "effect"
import { HttpTraceContext } from "effect/http"
import type { Headers } from "effect/http"
import { randomFillSync } from "node:crypto"

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

/** Random bytes are drawn in advance: one by one they cost more than the rest of a trace. */
const pool = Buffer.alloc(8192)
let used = pool.length

const hex = (bytes: number): string => {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString("hex", used - bytes, used)
}

/** Continues a valid incoming `traceparent`, else begins a trace. Contract 2. */
export const traceOf = (headers: Headers.Headers): RequestTrace["Service"] => {
  const parent = Option.getOrUndefined(HttpTraceContext.w3c(headers))
  const traceId = parent?.traceId ?? hex(16)
  const sampled = parent === undefined || parent.sampled
  return { traceId, traceparent: `00-${traceId}-${hex(8)}-${sampled ? "01" : "00"}` }
}
