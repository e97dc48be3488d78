import { Schema } from "effect"
import { errorDetailCharactersMax, failureCharactersMax } from "../../domain/limits/Limits.ts"
import type { TaskError } from "../../domain/task/Task.ts"
import { sanitize } from "../../domain/VendorText.ts"
import { VendorError, VendorErrorClass } from "../../vendors/VendorError.ts"

/** The code and title of `task_info.error` for each class of failure. docs/reference/errors.md#task-error-codes */
const codes: Record<VendorErrorClass, { readonly code: number; readonly title: string }> = {
  FATAL_CLIENT: { code: 400, title: "Invalid Parameter" },
  CONTENT: { code: 3001, title: "Content Error" },
  RATE_LIMITED: { code: 3002, title: "Upstream Rate Limited" },
  TIMEOUT: { code: 3003, title: "Upstream Timeout" },
  LOST: { code: 3004, title: "Result Unavailable" },
  AMBIGUOUS: { code: 3004, title: "Result Unavailable" },
  FAILED: { code: 3005, title: "Upstream Provider Error" },
  RETRYABLE: { code: 3005, title: "Upstream Provider Error" },
  MEDIA: { code: 4002, title: "Input Media Error" },
  OPERATOR: { code: 4008, title: "Service Configuration Error" },
  GONE: { code: 4008, title: "Service Configuration Error" }
}

/** The failure of a submit as stored text, for another process that takes over the task. */
export const failureText = (error: VendorError): string =>
  withoutNul(`${error.class}: ${error.message}`.slice(0, failureCharactersMax).toWellFormed())

/** Postgres cannot store U+0000 in a text. */
const withoutNul = (text: string): string => text.replaceAll("\u0000", "\uFFFD")

const isClass = Schema.is(VendorErrorClass)

/** Parses the text of `failureText`. An unreadable text counts as a final failure. */
export const storedFailure = (text: string | null): VendorError => {
  const [name = "", ...rest] = (text ?? "").split(": ")
  return isClass(name)
    ? new VendorError({ class: name, message: rest.join(": ") })
    : new VendorError({ class: "FAILED", message: "The upstream refused the job" })
}

/** What the client is told if the fault is the operator's. The vendor's message appears only in the log. */
const operatorDetails: { readonly [kind in VendorErrorClass]?: string } = {
  OPERATOR: "The service cannot reach this model now. The operator has been notified",
  GONE: "The vendor no longer offers this model. The operator has been notified"
}

/** The error of a task whose vendor failed. */
export const taskErrorOf = (error: VendorError): TaskError => ({
  ...codes[error.class],
  detail: operatorDetails[error.class] ?? sanitize(error.message, errorDetailCharactersMax)
})
