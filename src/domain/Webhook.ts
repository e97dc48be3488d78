import { Schema } from "effect"
import { OpenAiEventType } from "./Event.ts"
import type { DeliveryType } from "./Event.ts"
import { Metadata } from "./task/Metadata.ts"

/**
 * `succeeded` and `failed` are terminal; `skipped` can be redelivered.
 * docs/reference/webhooks.md#delivery-states
 */
export const DeliveryStatus = Schema.Literals([
  "pending",
  "delivering",
  "succeeded",
  "failed",
  "skipped"
])
export type DeliveryStatus = typeof DeliveryStatus.Type

/** Why an attempt failed. `lost`: the process died between sending the request and recording its outcome. */
export const FailureClass = Schema.Literals([
  "dns",
  "connect",
  "tls",
  "timeout",
  "http_status",
  "redirect",
  "protocol",
  "blocked",
  "payload_too_large",
  "lost"
])
export type FailureClass = typeof FailureClass.Type

/** The outcome of one attempt. */
export const AttemptOutcome = Schema.Struct({
  /** HTTP status of the response, if there was one. */
  status: Schema.NullOr(Schema.Int),
  /** `null` for success, which is any 2xx. */
  failure: Schema.NullOr(FailureClass),
  /** One line for the delivery log, without secrets. */
  detail: Schema.NullOr(Schema.String),
  /** The first `webhookResponseBytesMax` bytes of the response body as text. */
  answer: Schema.NullOr(Schema.String),
  /** IP address of the receiver. */
  remoteAddress: Schema.NullOr(Schema.String)
})
export type AttemptOutcome = typeof AttemptOutcome.Type

/** Possible faults of a received delivery, as reported by `debug-signature`. */
export const FindingCode = Schema.Literals([
  "missing_header",
  "malformed_timestamp",
  "skew",
  "wrong_prefix",
  "unknown_delivery",
  "other_endpoint",
  "bytes_changed",
  "old_secret",
  "wrong_secret",
  "signature_mismatch"
])
export type FindingCode = typeof FindingCode.Type

/** The format in which a webhook receives its events. docs/reference/webhooks.md#openais-format */
export const WebhookFormat = Schema.Literals(["gateway", "openai"])
export type WebhookFormat = typeof WebhookFormat.Type

const isOpenAiType = Schema.is(OpenAiEventType)

/** Faults for the events, with their index, that a webhook of this format cannot receive. */
export const formatFaults = (
  format: WebhookFormat,
  events: ReadonlyArray<DeliveryType>
): ReadonlyArray<{ readonly n: number; readonly detail: string }> =>
  format === "openai"
    ? []
    : events.flatMap((type, n) =>
        isOpenAiType(type) ? [{ n, detail: `${type} needs the format openai` }] : []
      )

/**
 * Selects the tasks whose events an endpoint receives. An absent member matches all tasks.
 * docs/reference/webhooks.md#filters
 */
export const EndpointFilter = Schema.Struct({
  /** Names of models or aliases, as in the paths of creates. */
  models: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Pairs that the task's metadata must contain. */
  metadata: Schema.optionalKey(Metadata)
})
export type EndpointFilter = typeof EndpointFilter.Type

/** The masked form of a signing secret. docs/reference/requirements.md#r-webhook-7 */
export const secretPreview = (secret: string): string => `whsec_...${secret.slice(-4)}`
