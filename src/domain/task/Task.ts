import { Schema, SchemaTransformation } from "effect"
import { TaskId } from "../Ids.ts"
import { Metadata } from "./Metadata.ts"

/** A terminal state never changes. docs/reference/tasks.md#states */
export const TaskStatus = Schema.Literals(["pending", "processing", "completed", "failed"])
export type TaskStatus = typeof TaskStatus.Type

export const isTerminal = (status: TaskStatus): boolean =>
  status === "completed" || status === "failed"

/** docs/reference/errors.md#task-error-codes */
export const TaskError = Schema.Struct({
  code: Schema.Int,
  title: Schema.String,
  detail: Schema.String
}).annotate({ identifier: "TaskError" })
export type TaskError = typeof TaskError.Type

/** A text with a `format` in JSON Schema; the format is not checked here. */
const formatted = (format: string) =>
  Schema.String.check(
    Schema.makeFilter<string>(() => undefined, { toJsonSchema: () => ({ format }) })
  )

const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/iu

const yearFirst = Date.UTC(-1, 11, 31, 23, 59, 59, 999) + 1
const yearLast = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * Whether the text is a JSON Schema `date-time` on an existing day. Its year must have four digits in UTC too, so that
 * every accepted time can be formatted again.
 */
const isTime = (text: string): boolean => {
  const [, year, month, day] = rfc3339.exec(text) ?? []
  const millis = Date.parse(text)
  if (day === undefined || !(millis >= yearFirst && millis <= yearLast)) return false
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === +day
}

/** ISO 8601. Sent in UTC with milliseconds, accepted with any time zone, refused without one. */
export const Timestamp = Schema.String.check(
  Schema.makeFilter<string>(
    (text) => isTime(text) || 'Expected a time with its zone, such as "2030-01-31T12:00:00Z"',
    { toJsonSchema: () => ({ format: "date-time" }) }
  )
).pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))

/** `task_info`. docs/reference/tasks.md#result */
export const TaskInfo = Schema.Struct({
  id: TaskId,
  status: TaskStatus,
  created_at: Timestamp,
  updated_at: Timestamp,
  error: Schema.optionalKey(TaskError)
}).annotate({ identifier: "TaskInfo" })

/** The media that models generate. `meshes`: 3D files; `documents`: JSON. */
export const MediaKind = Schema.Literals(["images", "videos", "audios", "meshes", "documents"])
export type MediaKind = typeof MediaKind.Type

/** The name of a result array. `responses`: background responses of a language model; `batches`: files of a batch. */
export const ResultKind = Schema.Literals([...MediaKind.literals, "responses", "batches"])
export type ResultKind = typeof ResultKind.Type

/** The last segment of a create path. `responses`: a response of a language model; `batches`: many of them. */
export const TaskAction = Schema.Literals(["generation", "edit", "responses", "batches"])
export type TaskAction = typeof TaskAction.Type

const Uris = Schema.Array(formatted("uri"))

/** The response of GET and the `payload` of every task event. docs/reference/tasks.md#result */
export const TaskResult = Schema.Struct({
  task_info: TaskInfo,
  images: Schema.optionalKey(Uris),
  videos: Schema.optionalKey(Uris),
  audios: Schema.optionalKey(Uris),
  meshes: Schema.optionalKey(Uris),
  documents: Schema.optionalKey(Uris),
  responses: Schema.optionalKey(Uris),
  batches: Schema.optionalKey(Uris),
  metadata: Schema.optionalKey(Metadata)
}).annotate({ identifier: "TaskResult" })
export type TaskResult = typeof TaskResult.Type
