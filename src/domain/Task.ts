import { Schema, SchemaTransformation } from "effect"
import { TaskId } from "./Ids.ts"

/** Spec, Task states. A terminal state never changes (contract 1). */
export const TaskStatus = Schema.Literals(["pending", "processing", "completed", "failed"])
export type TaskStatus = typeof TaskStatus.Type

export const isTerminal = (status: TaskStatus): boolean =>
  status === "completed" || status === "failed"

/** The error of a failed task; codes as in contract 4. Spec, Resources. */
export const TaskError = Schema.Struct({
  code: Schema.Int,
  title: Schema.String,
  detail: Schema.String
}).annotate({ identifier: "TaskError" })
export type TaskError = typeof TaskError.Type

/** A text whose format is told in JSON Schema. */
const formatted = (format: string) =>
  Schema.String.check(
    Schema.makeFilter<string>(() => undefined, { toJsonSchema: () => ({ format }) })
  )

const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/iu

const yearFirst = Date.UTC(-1, 11, 31, 23, 59, 59, 999) + 1
const yearLast = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/**
 * Is it a time as JSON Schema's `date-time` has it, on a day that there is? In UTC too its year has four
 * digits: what is taken can be shown.
 */
const isTime = (text: string): boolean => {
  const [, year, month, day] = rfc3339.exec(text) ?? []
  const millis = Date.parse(text)
  if (day === undefined || !(millis >= yearFirst && millis <= yearLast)) return false
  return new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() === +day
}

/** ISO 8601: sent in UTC with milliseconds, taken with any zone, but never without one. */
export const Timestamp = Schema.String.check(
  Schema.makeFilter<string>(
    (text) => isTime(text) || 'Expected a time with its zone, such as "2030-01-31T12:00:00Z"',
    { toJsonSchema: () => ({ format: "date-time" }) }
  )
).pipe(Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString))

/** Spec, Task (`task_info`). */
export const TaskInfo = Schema.Struct({
  id: TaskId,
  status: TaskStatus,
  created_at: Timestamp,
  updated_at: Timestamp,
  error: Schema.optionalKey(TaskError)
}).annotate({ identifier: "TaskInfo" })
export type TaskInfo = typeof TaskInfo.Type

/** The name of a result array. Spec, Task result. */
export const ResultKind = Schema.Literals(["images", "videos", "audios"])
export type ResultKind = typeof ResultKind.Type

const Uris = Schema.Array(formatted("uri"))

/** What GET answers, and the `payload` of every task event. Spec, Task result and Events. */
export const TaskResult = Schema.Struct({
  task_info: TaskInfo,
  images: Schema.optionalKey(Uris),
  videos: Schema.optionalKey(Uris),
  audios: Schema.optionalKey(Uris)
}).annotate({ identifier: "TaskResult" })
export type TaskResult = typeof TaskResult.Type
