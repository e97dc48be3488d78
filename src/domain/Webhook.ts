import { Schema } from "effect"

/** Contract 8. Terminal: `succeeded`, `failed`; `skipped` stays replayable. */
export const DeliveryStatus = Schema.Literals([
  "pending",
  "delivering",
  "succeeded",
  "failed",
  "skipped"
])
export type DeliveryStatus = typeof DeliveryStatus.Type

/** Why an attempt failed. `lost`: the process died between sending and recording. */
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

/** What one attempt came to. The delivery is done on `succeeded` alone. */
export const AttemptOutcome = Schema.Struct({
  /** HTTP status of the answer, if one came. */
  status: Schema.NullOr(Schema.Int),
  /** `null`: any 2xx, a success. */
  failure: Schema.NullOr(FailureClass),
  /** One line for the log, never a secret. */
  detail: Schema.NullOr(Schema.String),
  /** First bytes of the answer's body as text, at most `webhookAnswerBytesMax` bytes. */
  answer: Schema.NullOr(Schema.String),
  /** Address that was connected to. */
  remoteAddress: Schema.NullOr(Schema.String)
})
export type AttemptOutcome = typeof AttemptOutcome.Type

/** What can be wrong with a received delivery, as `debug-signature` says it. */
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

/** The masked form of a signing secret, `whsec_...abcd`. Spec, Webhook endpoint. */
export const secretPreview = (secret: string): string => `whsec_...${secret.slice(-4)}`
