import { Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { AppConfig } from "../config/Config.ts"
import { isSameBytes } from "../domain/ConstantTime.ts"
import { DeliveryId } from "../domain/Ids.ts"
import type { EndpointId, UserId } from "../domain/Ids.ts"
import { signatureSkewSecondsMax } from "../domain/limits/Limits.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import type { FindingCode } from "../domain/Webhook.ts"
import { Process } from "../process/heartbeat/Process.ts"
import { Secrets } from "../process/secrets/Secrets.ts"
import { DeliveryLogStore } from "./DeliveryLogStore.ts"
import { noEndpoint } from "./Endpoints.ts"
import { sign } from "./Signature.ts"
import { WebhookSecretStore } from "./WebhookSecretStore.ts"

/** A delivery as its receiver reports it. */
export interface ReceivedDelivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The secret with which the receiver verifies. */
  readonly secret: Option.Option<string>
  readonly receivedAt: Option.Option<DateTime.Utc>
}

export interface Finding {
  readonly code: FindingCode
  readonly detail: string
}

export interface SignatureReport {
  readonly valid: boolean
  /** All findings, including those that do not break the verification yet but soon will. */
  readonly findings: ReadonlyArray<Finding>
}

/**
 * Explains why a receiver could not verify a delivery. Unlike `verifyWebhook`, which is self-contained for receivers
 * and stops at the first reason, this reports all findings and knows the secrets and the log.
 * docs/reference/webhooks.md#debugging-a-signature.
 */
export class SignatureDebug extends Context.Service<
  SignatureDebug,
  {
    readonly explain: (
      userId: UserId,
      endpointId: EndpointId,
      received: ReceivedDelivery
    ) => Effect.Effect<SignatureReport, Problem | StoreUnavailable>
  }
>()("gateway/webhooks/SignatureDebug") {
  static readonly layer = Layer.effect(
    SignatureDebug,
    Effect.gen(function* () {
      const { serviceName } = yield* AppConfig
      const store = yield* WebhookSecretStore
      const log = yield* DeliveryLogStore
      const process = yield* Process
      const secrets = yield* Secrets

      return SignatureDebug.of({
        explain: Effect.fn("SignatureDebug.explain")(function* (userId, endpointId, received) {
          const signing = yield* store.signingAt(userId, endpointId)
          if (Option.isNone(signing)) return yield* noEndpoint(endpointId)
          const parts = readHeaders(serviceName, received.headers)
          // Signatures use the database's clock
          const now = DateTime.makeUnsafe(process.databaseMillis())
          const found: Array<Finding> = [
            ...headerFindings(serviceName, parts),
            ...timeFindings(
              parts,
              Option.getOrElse(received.receivedAt, () => now)
            )
          ]
          const decrypt = (encrypted: Uint8Array | null) =>
            Effect.map(
              Effect.option(Effect.flatMap(Effect.fromNullishOr(encrypted), secrets.decrypt)),
              Option.getOrUndefined
            )
          const keys = {
            current: yield* decrypt(signing.value.secret),
            previous: yield* decrypt(signing.value.previousSecret),
            receiver: Option.getOrUndefined(received.secret)
          }
          const id = decodeDeliveryId(parts.id)
          const row = Option.isSome(id) ? yield* log.find(userId, id.value) : Option.none()
          const sent =
            Option.isSome(row) && row.value.endpointId === endpointId
              ? yield* log.body(row.value.id)
              : Option.none()
          if (parts.id !== undefined && Option.isNone(row)) {
            found.push(finding("unknown_delivery", `The log has no delivery ${parts.id} of yours`))
          }
          if (Option.isSome(row) && row.value.endpointId !== endpointId) {
            const other = row.value.endpointId
            found.push(
              finding("other_endpoint", `This delivery was for ${other}, which has its own secret`)
            )
          }
          found.push(...secretFindings(keys))
          found.push(...signatureFindings(parts, received.body, sent, keys))
          return { valid: found.length === 0, findings: found }
        })
      })
    })
  )
}

interface Parts {
  readonly id: string | undefined
  readonly timestamp: string | undefined
  readonly signature: string | undefined
  readonly previous: string | undefined
}

interface Keys {
  readonly current: string | undefined
  readonly previous: string | undefined
  readonly receiver: string | undefined
}

const finding = (code: FindingCode, detail: string): Finding => ({ code, detail })

const decodeDeliveryId = Schema.decodeUnknownOption(DeliveryId)

const readHeaders = (serviceName: string, headers: ReceivedDelivery["headers"]): Parts => {
  const prefix = `x-${serviceName.toLowerCase()}-webhook-`
  const values = new Map(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()])
  )
  const read = (name: string) => {
    const value = values.get(`${prefix}${name}`)
    return value === "" ? undefined : value
  }
  return {
    id: read("id"),
    timestamp: read("timestamp"),
    signature: read("signature"),
    previous: read("signature-previous")
  }
}

const headerFindings = (serviceName: string, parts: Parts): ReadonlyArray<Finding> => {
  const required = [
    ["Id", parts.id],
    ["Timestamp", parts.timestamp],
    ["Signature", parts.signature]
  ] as const
  const missing = required
    .filter(([, value]) => value === undefined)
    .map(([name]) =>
      finding("missing_header", `The header X-${serviceName}-Webhook-${name} is missing`)
    )
  if (parts.signature === undefined || parts.signature.startsWith("v1=")) return missing
  const detail = "The signature does not start with v1=: other versions must be rejected"
  return [...missing, finding("wrong_prefix", detail)]
}

const timeFindings = (parts: Parts, at: DateTime.Utc): ReadonlyArray<Finding> => {
  if (parts.timestamp === undefined) return []
  if (!/^\d{1,15}$/u.test(parts.timestamp)) {
    return [finding("malformed_timestamp", "The timestamp is not a whole number of seconds")]
  }
  const seconds = Math.round(DateTime.toEpochMillis(at) / 1000 - Number(parts.timestamp))
  if (Math.abs(seconds) <= signatureSkewSecondsMax) return []
  const side = seconds > 0 ? "before" : "after"
  const detail = `Signed ${Math.abs(seconds)} s ${side} it was received, more than ${signatureSkewSecondsMax}: check the receiver's clock, or send received_at`
  return [finding("skew", detail)]
}

const secretFindings = ({ current, previous, receiver }: Keys): ReadonlyArray<Finding> => {
  if (receiver === undefined || receiver === current) return []
  if (receiver === previous) {
    return [finding("old_secret", "The receiver uses the secret from before the last rotation")]
  }
  const detail =
    receiver.trim() === current
      ? "The receiver's secret has white space around it"
      : `whsec_${receiver}` === current
        ? "The receiver's secret lacks whsec_: the entire string is the key"
        : "The receiver's secret is not this endpoint's"
  return [finding("wrong_secret", detail)]
}

/** Tries each secret of the endpoint with the received and with the sent body. */
const signatureFindings = (
  parts: Parts,
  body: Uint8Array,
  sent: Option.Option<Uint8Array>,
  { current, previous }: Keys
): ReadonlyArray<Finding> => {
  const { id, signature, timestamp } = parts
  const changed = Option.match(sent, {
    onNone: () => [],
    onSome: (bytes) => (isSameBytes(bytes, body) ? [] : [bytesChanged(bytes, body)])
  })
  if (id === undefined || timestamp === undefined || signature === undefined) return changed
  if (!signature.startsWith("v1=")) return changed
  const signedBy = (key: string | undefined, bytes: Uint8Array) =>
    key !== undefined &&
    [signature, parts.previous].includes(
      sign(key, { deliveryId: id, timestampSeconds: Number(timestamp), body: bytes })
    )
  const bodies = [body, ...Option.toArray(sent)]
  if (bodies.some((bytes) => signedBy(current, bytes))) {
    // Without a log entry, the received body is assumed to be the one that was signed
    return changed
  }
  if (bodies.some((bytes) => signedBy(previous, bytes))) {
    const detail = "Signed with the secret from before the last rotation: the delivery is older"
    return [...changed, finding("old_secret", detail)]
  }
  const detail =
    "No secret of this endpoint signed these headers and this body: something was changed in transit, or the request is not from this service"
  return [...changed, finding("signature_mismatch", detail)]
}

const bytesChanged = (sent: Uint8Array, received: Uint8Array): Finding => {
  const shorter = Math.min(sent.length, received.length)
  const first = sent.findIndex((byte, index) => byte !== received[index])
  const at = first === -1 ? shorter : first
  const hint = sameJson(sent, received)
    ? "; it is the same JSON, so it was parsed and serialized again: verify the raw body"
    : ""
  const detail = `The body is not the one that was sent: ${received.length} bytes instead of ${sent.length}, first difference at byte ${at}${hint}`
  return finding("bytes_changed", detail)
}

const parse = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

const sameJson = (a: Uint8Array, b: Uint8Array): boolean => {
  const [left, right] = [a, b].map((bytes) => parse(new TextDecoder().decode(bytes)))
  return (
    left !== undefined &&
    right !== undefined &&
    Option.isSome(left) &&
    Option.isSome(right) &&
    canonical(left.value) === canonical(right.value)
  )
}

/** JSON with sorted keys, so that equal values have equal texts. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner
  )
