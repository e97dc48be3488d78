import { Context, Option, Tracer } from "effect"
import { randomHex } from "../../../domain/RandomHex.ts"
import { headerText } from "../HeaderText.ts"
import type { HeaderValues } from "../HeaderText.ts"

/**
 * The W3C trace context of the request, which clients quote when they report a problem. docs/reference/http.md#trace
 */
export class RequestTrace extends Context.Service<
  RequestTrace,
  {
    /** 32 hex digits, stored with the tasks, calls, events and ledger entries of the request. */
    readonly traceId: string
    /** The value of the response header. */
    readonly traceparent: string
  }
>()("gateway/http/server/RequestTrace") {}

/** Of later versions, only the parts that version 00 defines are read (W3C Trace Context, section 3.2.4). */
const w3c =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?$/u

/** The trace of the request's span, if spans are exported, so that the response names an existing span. */
export const traceOfSpan = (tracer: Tracer.Tracer, span: Option.Option<Tracer.AnySpan>) =>
  tracer === Tracer.Tracer.defaultValue()
    ? undefined
    : Option.getOrUndefined(
        Option.map(span, ({ sampled, spanId, traceId }) => ({
          traceId,
          traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
        }))
      )

/** Continues a valid incoming `traceparent`, or starts a new trace. */
export const traceOf = (headers: HeaderValues): RequestTrace["Service"] => {
  const [, version, parent, flags = "01", more] =
    w3c.exec(headerText(headers, "traceparent") ?? "") ?? []
  const isValid = parent !== undefined && (more === undefined || version !== "00")
  const traceId = isValid ? parent : randomHex(32)
  const sampled = !isValid || (Number.parseInt(flags, 16) & 1) === 1
  return { traceId, traceparent: `00-${traceId}-${randomHex(16)}-${sampled ? "01" : "00"}` }
}
