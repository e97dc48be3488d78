import { Context, Metric } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AdmissionService } from "../../../process/admission/Admission.ts"
import type { AdmissionLimiter } from "../../../process/admission/AdmissionLimiter.ts"
import { isOfExistingTask } from "../Paths.ts"
import type { RequestCaller } from "./RequestCaller.ts"

/** `false`: the request is being refused, now or soon. */
export type OverloadGuard = (request: IncomingMessage, response: ServerResponse) => boolean

/**
 * In each event-loop turn, refusals get this share of the time that all other work took, and at least a minimum in
 * milliseconds. While its refusal waits, a client sends nothing that would have to be read.
 */
const refusalShare = 0.1
const refusalMillis = 0.25

/**
 * The newest request is refused first, but requests that have waited this many milliseconds come before it. Most
 * clients thus get their refusal at once, and few objects live long. ADR 0207.
 */
const lateMillis = 1000

interface Refused {
  readonly response: ServerResponse
  /** When the request was refused, in milliseconds of `performance.now()`. */
  readonly at: number
}

/**
 * Admits requests before their bodies are read, each caller within its share. Only new work is ever refused: probes,
 * metrics, management, callbacks and requests about existing tasks cost little or save work. ADR 0207, 0277.
 */
export const makeOverloadGuard = (
  admission: AdmissionService,
  callerOf: RequestCaller,
  refuse: (response: ServerResponse) => void
): OverloadGuard => {
  const measured = [measuredBy(admission.creates, "creates"), measuredBy(admission.calls, "calls")]
  const refused: Array<Refused> = []
  let isMeasured = false
  let isAsked = false
  /** Measures a turn: the event loop runs immediates after it has handled everything that it read in the turn. */
  const measureTurn = () => {
    isMeasured = true
    isAsked = false
    setImmediate(endTurn, performance.now())
  }
  const endTurn = (beganAt: number) => {
    const now = performance.now()
    const took = now - beganAt
    for (const measure of measured) measure(now, took)
    if (refused.length > 0) refuseSome(now + Math.max(refusalMillis, refusalShare * took))
    isMeasured = false
    // Also measures the whole next turn, because it works on the admitted requests before it reads more. ADR 0207
    if (isAsked || refused.length > 0) measureTurn()
  }
  const refuseSome = (untilMillis: number) => {
    for (let now = performance.now(); now <= untilMillis; now = performance.now()) {
      const isLate = refused[0] !== undefined && now - refused[0].at > lateMillis
      const next = isLate ? refused.shift() : refused.pop()
      if (next === undefined) return
      if (!next.response.destroyed) refuse(next.response)
    }
  }
  return (request, response) => {
    const limiter = limiterOf(request, admission)
    if (limiter === undefined) return true
    if (!isMeasured) measureTurn()
    isAsked = true
    if (limiter.admit(callerOf(request))) return true
    refused.push({ response, at: performance.now() })
    return false
  }
}

/** Ends a turn of a limiter and updates its metrics. */
const measuredBy = (limiter: AdmissionLimiter, cause: string) => {
  const refused = Metric.withAttributes(refusedTotal, { cause })
  // Starts at 0, so that a rate includes the first refusal
  refused.updateUnsafe(0, Context.empty())
  const delay = Metric.withAttributes(delaySeconds, { cause })
  delay.updateUnsafe(0, Context.empty())
  return (nowMillis: number, tookMillis: number) => {
    const before = limiter.delay
    limiter.turn(nowMillis, tookMillis)
    const count = limiter.takeRefused()
    if (count > 0) refused.updateUnsafe(count, Context.empty())
    if (limiter.delay !== before) delay.updateUnsafe(limiter.delay / 1000, Context.empty())
  }
}

const limiterOf = (
  { method, url = "" }: IncomingMessage,
  { calls, creates }: AdmissionService
): AdmissionLimiter | undefined => {
  if (method !== "POST" || isOfExistingTask(url)) return undefined
  if (create.test(url)) return creates
  return url.startsWith("/v1/") || url.startsWith("/vendors/") ? calls : undefined
}

/** Paths of creates. An MCP message may be one, which is unknown before it is read. */
const create =
  /^(?:\/vendors\/[^/]+\/v1\/[^/]+\/(?:generation|edit)|\/v1\/(?:videos|images\/(?:generations|edits))|\/manage\/v1\/task-batches|\/mcp)(?:\?|$)/u

const refusedTotal = Metric.counter("gateway_overload_refused_total", {
  description: "Requests refused with 503 because the process did not keep up",
  incremental: true
})

const delaySeconds = Metric.gauge("gateway_overload_delay_seconds", {
  description:
    "Average of a turn of the event loop with new work and of an operation on the store, together"
})
