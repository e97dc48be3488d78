import { Context, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpTraceContext } from "effect/http"
import type { Headers } from "effect/http"

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

/** Random hex digits are drawn in bulk: one call of the system for hundreds of requests. */
const poolBytes = 4096
let pool = ""

const hex = (bytes: number): string => {
  if (pool.length < 2 * bytes) {
    pool = Buffer.from(SecureRandom.randomBytesUnsafe(poolBytes)).toString("hex")
  }
  const text = pool.slice(0, 2 * bytes)
  pool = pool.slice(2 * bytes)
  return text
}

/** Continues a valid incoming `traceparent`, else begins a trace. Contract 2. */
export const traceOf = (headers: Headers.Headers): RequestTrace["Service"] => {
  const parent = Option.getOrUndefined(HttpTraceContext.w3c(headers))
  const traceId = parent?.traceId ?? hex(16)
  const sampled = parent === undefined || parent.sampled
  return { traceId, traceparent: `00-${traceId}-${hex(8)}-${sampled ? "01" : "00"}` }
}
