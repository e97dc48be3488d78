import { DateTime } from "effect"
import type { FailureClass } from "../../domain/Webhook.ts"
import type { AttemptRow, DeliveryRow } from "../../webhooks/Deliveries.ts"
import { attemptsMax } from "../../webhooks/RetryPolicy.ts"

/** Explains deliveries in plain text. docs/reference/mcp.md#explain_delivery */

/**
 * A delivery with related data. `endpoint` is absent if it was deleted; the task's own webhook is present if it has
 * one.
 */
export interface DeliveryFacts {
  readonly row: DeliveryRow
  readonly attempts: ReadonlyArray<AttemptRow>
  readonly endpoint: { readonly url: string; readonly enabled: boolean } | undefined
}

const failures: Readonly<Record<FailureClass, string>> = {
  dns: "the name of the host could not be resolved",
  connect: "no connection could be made",
  tls: "the TLS handshake or the certificate failed",
  timeout: "no response came in time",
  http_status: "the receiver did not answer with a 2xx status",
  redirect: "the receiver answered with a redirect, which is not followed",
  protocol: "what came back was not valid HTTP",
  blocked: "the URL leads to an address that may not be called",
  payload_too_large: "the event is larger than 64 KB, and was not sent",
  lost: "the gateway's process ended before it knew the outcome; it is sent again and does not count"
}

const time = DateTime.formatIso

/** The URL without query and credentials, which may be secrets. */
export const placeOf = (url: string): string => {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

const attemptWords = (row: AttemptRow): string => {
  const late = DateTime.toEpochMillis(row.startedAt) - DateTime.toEpochMillis(row.dueAt)
  const begin = `Attempt ${row.seq} began at ${time(row.startedAt)}, ${late} ms after it was due`
  const to = row.remoteAddress === null ? "" : `, to ${row.remoteAddress}`
  if (row.endedAt === null) return `${begin}${to}, and is under way.`
  const took = DateTime.toEpochMillis(row.endedAt) - DateTime.toEpochMillis(row.startedAt)
  const status = row.status === null ? "no response" : `HTTP ${row.status}`
  const why =
    row.failure === null ? "which is a success" : `${row.failure}: ${failures[row.failure]}`
  const detail = row.detail === null ? "" : ` (${row.detail})`
  return `${begin}${to}. After ${took} ms it ended with ${status}, ${why}${detail}.`
}

/** What happens next with a delivery, and what the user can do. */
export const nextOfDelivery = ({ attempts, endpoint, row }: DeliveryFacts): string => {
  const again = `It can be sent again: POST /manage/v1/webhook-deliveries/${row.id}/redeliver.`
  switch (row.status) {
    case "succeeded":
      return `Nothing more is sent: the receiver accepted it. ${endpoint === undefined ? "" : again}`.trim()
    case "failed":
      if (endpoint === undefined) return "Nothing more is sent: its endpoint was deleted."
      return attempts.at(-1)?.failure === "payload_too_large"
        ? "Nothing is sent: the event would be too large again. Read its content from the API."
        : `Nothing more is sent: attempt ${row.attempts} of ${attemptsMax} was the last. When the receiver is repaired: ${again}`
    case "skipped":
      return endpoint === undefined
        ? "Nothing is sent: its endpoint was deleted."
        : `Nothing is sent: its endpoint ${endpoint.enabled ? "was disabled at the time" : "is disabled"}. ${again}`
    case "delivering":
      return "An attempt is under way now."
    case "pending":
      return row.nextDueAt === null
        ? "It is sent as soon as its endpoint has capacity."
        : `Attempt ${row.attempts + 1} of ${attemptsMax} is due at ${time(row.nextDueAt)}.`
  }
}

/** A complete explanation of one delivery. */
export const explain = (facts: DeliveryFacts): string => {
  const { attempts, endpoint, row } = facts
  const of = row.taskId === null ? "" : ` of task ${row.taskId}`
  const to =
    endpoint === undefined
      ? `the endpoint ${row.endpointId}, which was deleted`
      : `${placeOf(endpoint.url)} (${row.webhookUrl === null ? `endpoint ${row.endpointId}` : "the webhook of the task"})`
  return [
    `Delivery ${row.id} carries the event ${row.eventId} (${row.eventType}${of}) of ${time(row.createdAt)} to ${to}. It is ${row.status}.`,
    ...(attempts.length === 0 ? ["Nothing has been sent yet."] : attempts.map(attemptWords)),
    nextOfDelivery(facts)
  ].join(" ")
}
