import { Context, Metric } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { isOfExistingTask, isTaskPath, isTaskShape } from "../Paths.ts"

type Kind = "create" | "task" | "call" | "manage" | "service"

/** `aborted`: the connection ended before the response did. */
type Outcome = "success" | "refused" | "failed" | "aborted"

const duration = Metric.histogram("gateway_http_request_duration_seconds", {
  description: "From the headers of a request to the end of its response",
  boundaries: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
})

const seriesOf: { [kind in Kind]?: { [outcome in Outcome]?: Metric.Histogram<number> } } = {}

const series = (kind: Kind, outcome: Outcome): Metric.Histogram<number> => {
  const ofKind = (seriesOf[kind] ??= {})
  return (ofKind[outcome] ??= Metric.withAttributes(duration, { kind, outcome }))
}

const none = Context.empty()

/** Measures a request until its response has ended. Call it once per request. ADR 0223 */
export const measureRequest = (request: IncomingMessage, response: ServerResponse): void => {
  const beganAt = performance.now()
  response.on("close", () => {
    const seconds = (performance.now() - beganAt) / 1000
    series(kindOf(request), outcomeOf(response)).updateUnsafe(seconds, none)
  })
}

const kindOf = ({ method, url = "" }: IncomingMessage): Kind => {
  if (isTaskPath(url) || isTaskShape(url)) {
    return method === "POST" && !isOfExistingTask(url) ? "create" : "task"
  }
  if (url.startsWith("/v1/") || url.startsWith("/vendors/")) return "call"
  return url.startsWith("/manage/") ? "manage" : "service"
}

const outcomeOf = ({ statusCode, writableFinished }: ServerResponse): Outcome => {
  if (!writableFinished) return "aborted"
  if (statusCode >= 500) return "failed"
  return statusCode >= 400 ? "refused" : "success"
}
