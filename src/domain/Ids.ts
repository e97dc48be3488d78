import { Option, Schema } from "effect"
import { randomHex } from "./RandomHex.ts"

/** A UUID of version 7, so that ids sort by time. */
export const TaskId = Schema.String.check(Schema.isUUID()).pipe(Schema.brand("TaskId"))
export type TaskId = typeof TaskId.Type

export const UserId = Schema.String.check(Schema.isUUID()).pipe(Schema.brand("UserId"))
export type UserId = typeof UserId.Type

/** The id of an API key, not the key itself. */
export const ApiKeyId = Schema.String.check(
  Schema.isPattern(/^key_[\w-]{1,80}$/u, { expected: "an id that begins with key_" })
).pipe(Schema.brand("ApiKeyId"))
export type ApiKeyId = typeof ApiKeyId.Type

export const EndpointId = Schema.String.check(
  Schema.isPattern(/^whe_[\w-]{1,80}$/u, { expected: "an id that begins with whe_" })
).pipe(Schema.brand("EndpointId"))
export type EndpointId = typeof EndpointId.Type

/** The id of a synthetic test event starts with `evt_test_`. */
export const EventId = Schema.String.check(
  Schema.isPattern(/^evt_[\w-]{1,80}$/u, { expected: "an id that begins with evt_" })
).pipe(Schema.brand("EventId"))
export type EventId = typeof EventId.Type

/**
 * Identifies the delivery of one event to one endpoint. The same on every attempt.
 * docs/reference/requirements.md#r-webhook-10
 */
export const DeliveryId = Schema.String.check(
  Schema.isPattern(/^whd_[\w-]{1,80}$/u, { expected: "an id that begins with whd_" })
).pipe(Schema.brand("DeliveryId"))
export type DeliveryId = typeof DeliveryId.Type

/** The id of a session, not its cookie. */
export const SessionId = Schema.String.check(
  Schema.isPattern(/^ses_[\w-]{1,80}$/u, { expected: "an id that begins with ses_" })
).pipe(Schema.brand("SessionId"))
export type SessionId = typeof SessionId.Type

/** The id of a passkey, not its credential. */
export const PasskeyId = Schema.String.check(
  Schema.isPattern(/^pky_[\w-]{1,80}$/u, { expected: "an id that begins with pky_" })
).pipe(Schema.brand("PasskeyId"))
export type PasskeyId = typeof PasskeyId.Type

/** The id of a stored medium. docs/reference/tasks.md#artifacts */
export const ArtifactId = Schema.String.check(Schema.isPattern(/^art_[0-9a-f]{32}$/u)).pipe(
  Schema.brand("ArtifactId")
)
export type ArtifactId = typeof ArtifactId.Type

/** The id of a user's file. docs/reference/files.md */
export const FileId = Schema.String.check(Schema.isPattern(/^file-[0-9a-f]{32}$/u)).pipe(
  Schema.brand("FileId")
)
export type FileId = typeof FileId.Type

/** The id of an entry of the audit log. */
export const AuditId = Schema.String.check(
  Schema.isPattern(/^aud_[0-9a-f]{32}$/u, { expected: "an id that begins with aud_" })
).pipe(Schema.brand("AuditId"))
export type AuditId = typeof AuditId.Type

/** The id of tasks that one request created. docs/reference/batches.md */
export const TaskBatchId = Schema.String.check(
  Schema.isPattern(/^tb_[0-9a-f]{32}$/u, { expected: "an id that begins with tb_" })
).pipe(Schema.brand("TaskBatchId"))
export type TaskBatchId = typeof TaskBatchId.Type

let lastMillis = -1
let lastHex = ""

/** 12 hex digits, cached because many ids are made within one millisecond. */
const hexOf = (millis: number): string => {
  if (millis !== lastMillis) {
    lastHex = Math.trunc(millis).toString(16).padStart(12, "0")
    lastMillis = millis
  }
  return lastHex
}

/** Turns a random hex digit into the variant digit of RFC 9562. */
const variantOf = (digit: string): string => "89ab".charAt(Number.parseInt(digit, 16) & 3)

/** 32 hex digits: 48 bits of milliseconds, then version, variant and 74 random bits (RFC 9562, UUID 7). */
const timeSorted = (nowMillis: number): string => {
  const random = randomHex(19)
  return `${hexOf(nowMillis)}7${random.slice(0, 3)}${variantOf(random.charAt(3))}${random.slice(4)}`
}

/** Like `timeSorted`, with dashes; built in one expression, because every call needs an id. */
const uuid = (nowMillis: number): string => {
  const random = randomHex(19)
  const time = hexOf(nowMillis)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variantOf(random.charAt(3))}${random.slice(4, 7)}-${random.slice(7)}`
}

/** Ids take the caller's time, so that an id and its row have the same time. */
export const makeTaskId = (nowMillis: number): TaskId => TaskId.make(uuid(nowMillis))
/** Lower than the id of every task created at this time or later. */
export const firstTaskId = (millis: number): TaskId => {
  const time = hexOf(millis)
  return TaskId.make(`${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`)
}
/** The time in the id of a task, its `created_at`. */
export const taskTimeMillis = (id: TaskId): number =>
  Number.parseInt(id.replace("-", "").slice(0, 12), 16)
/** The id of a metered passthrough call. */
export const makeCallId = (nowMillis: number): string => uuid(nowMillis)
/** The response id of a task. docs/reference/background.md */
export const responseIdOf = (id: TaskId): string => `resp_${id.replaceAll("-", "")}`

/** The task of a response; `None` for an id that this service did not make. */
export const taskOfResponse = (id: string): Option.Option<TaskId> => {
  const hex = /^resp_([0-9a-f]{8})([0-9a-f]{4})(7[0-9a-f]{3})([89ab][0-9a-f]{3})([0-9a-f]{12})$/u
  const parts = hex.exec(id)?.slice(1)
  return parts === undefined ? Option.none() : Option.some(TaskId.make(parts.join("-")))
}
/** The batch id of a task, in OpenAI's form. docs/reference/vendor-batches.md */
export const batchIdOf = (id: TaskId): string => `batch_${id.replaceAll("-", "")}`

/** The batch id of a task, in Anthropic's form. */
export const messageBatchIdOf = (id: TaskId): string => `msgbatch_${id.replaceAll("-", "")}`

/** The task of a batch in either form; `None` for an id that this service did not make. */
export const taskOfBatch = (id: string): Option.Option<TaskId> => {
  const hex = /^(?:msg)?batch_(.*)$/u.exec(id)?.[1]
  return hex === undefined ? Option.none() : taskOfResponse(`resp_${hex}`)
}

export const makeUserId = (nowMillis: number): UserId => UserId.make(uuid(nowMillis))
export const makeApiKeyId = (nowMillis: number): ApiKeyId =>
  ApiKeyId.make(`key_${timeSorted(nowMillis)}`)
export const makeSessionId = (nowMillis: number): SessionId =>
  SessionId.make(`ses_${timeSorted(nowMillis)}`)
export const makeEndpointId = (nowMillis: number): EndpointId =>
  EndpointId.make(`whe_${timeSorted(nowMillis)}`)
export const makeEventId = (nowMillis: number): EventId =>
  EventId.make(`evt_${timeSorted(nowMillis)}`)
/**
 * The id of a task's outcome event. It ends like the task's id, so that a second outcome event, from a store that
 * went back in time, identifies the first. docs/reference/webhooks.md#a-second-outcome
 */
export const makeOutcomeEventId = (task: TaskId, nowMillis: number): EventId =>
  EventId.make(`evt_${hexOf(nowMillis)}${task.replaceAll("-", "").slice(-20)}`)
export const makeTestEventId = (nowMillis: number): EventId =>
  EventId.make(`evt_test_${timeSorted(nowMillis)}`)
export const makeArtifactId = (nowMillis: number): ArtifactId =>
  ArtifactId.make(`art_${timeSorted(nowMillis)}`)
export const makeFileId = (nowMillis: number): FileId =>
  FileId.make(`file-${timeSorted(nowMillis)}`)
export const makeAuditId = (nowMillis: number): AuditId =>
  AuditId.make(`aud_${timeSorted(nowMillis)}`)
export const makeTaskBatchId = (nowMillis: number): TaskBatchId =>
  TaskBatchId.make(`tb_${timeSorted(nowMillis)}`)

export const makePasskeyId = (nowMillis: number): PasskeyId =>
  PasskeyId.make(`pky_${timeSorted(nowMillis)}`)

/** The time in the id of an audit entry: its `created_at`, and so its partition. */
export const auditTimeMillis = (id: AuditId): number => Number.parseInt(id.slice(4, 16), 16)

/**
 * The time in a delivery id: its `created_at`, and so its day partition. `None` for an id that
 * this service did not make.
 */
export const deliveryTimeMillis = (id: DeliveryId): Option.Option<number> => {
  const time = /^whd_([0-9a-f]{12})[0-9a-f]{20}$/u.exec(id)?.[1]
  return Option.map(Option.fromUndefinedOr(time), (hex) => Number.parseInt(hex, 16))
}

/** The time in an event id: its `created_at`, and that of its deliveries. */
export const eventTimeMillis = (id: EventId): Option.Option<number> => {
  const time = /^evt_(?:test_)?([0-9a-f]{12})[0-9a-f]{20}$/u.exec(id)?.[1]
  return Option.map(Option.fromUndefinedOr(time), (hex) => Number.parseInt(hex, 16))
}

/** The id of an output file of a batch. It is the same on every attempt. */
export const outputFileIdOf = (task: TaskId, digest: string): FileId =>
  FileId.make(`file-${task.replaceAll("-", "").slice(0, 12)}${digest.slice(0, 20)}`)
