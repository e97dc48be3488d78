import { DateTime, Effect, Option } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { nextPlace } from "../../domain/Candidate.ts"
import type { SkipReason } from "../../domain/Candidate.ts"
import type { VendorError, VendorErrorClass } from "../../vendors/VendorError.ts"
import { submitQueue } from "../running/TaskQueue.ts"
import type { NextStep, Pass } from "../TaskStore.ts"

/** How the task of an alias goes on at its next model: both are written in one transaction. */
export interface PassedOn {
  readonly next: NextStep
  readonly pass: Pass
}

/**
 * The failures of a submit after which nothing can have been bought and another model may be asked. Not among
 * them: what the vendor says of the request itself (`CONTENT`, `FATAL_CLIENT`, `MEDIA`: a refusal that an adapter
 * does not know may be one of the content), and every doubt. docs/reference/aliases.md#when-the-next-model-is-tried
 */
const reasons: { readonly [kind in VendorErrorClass]?: SkipReason } = {
  RATE_LIMITED: "rate_limited",
  RETRYABLE: "unavailable",
  OPERATOR: "account_refused",
  GONE: "model_gone"
}

/** Why no account can take the submit, before it is sent. */
const reasonsBefore: { readonly [kind in VendorErrorClass]?: SkipReason } = {
  RATE_LIMITED: "rate_limited",
  RETRYABLE: "circuit_open",
  OPERATOR: "no_account"
}

export const skipReasonOf = ({ class: kind, httpStatus }: VendorError): SkipReason | undefined => {
  const isOfAccount = kind === "OPERATOR" || kind === "GONE"
  // Without the status of a refusal it may be the end of a job that was accepted
  return isOfAccount && httpStatus === undefined ? undefined : reasons[kind]
}

export const skipReasonBefore = ({ class: kind }: VendorError): SkipReason | undefined =>
  reasonsBefore[kind]

/**
 * The task at its next model, with the reason why the one before did not do it; `None`: that was the last one.
 * `attempt`: the submit that was refused. Media by URL are fetched again, for the rules of the next model.
 */
export const passOn = (
  task: TaskRow,
  reason: SkipReason,
  at: DateTime.Utc,
  attempt: number | null = null
): Option.Option<PassedOn> => {
  const { candidate: place, candidates } = task
  const to = nextPlace(task)
  const model = candidates?.[to ?? -1]
  if (candidates === null || to === undefined || model === undefined) return Option.none()
  return Option.some({
    next: { dueAt: at, queue: submitQueue(model), inputs: {} },
    pass: {
      candidate: to,
      candidates: candidates.map(({ model, price, skipped, vendor }, index) => ({
        vendor,
        model,
        price,
        skipped: index === place ? { reason, at, attempt } : skipped
      }))
    }
  })
}

/** The same after the refusal of a submit, when nothing can have been bought. */
export const passAfter = (
  task: TaskRow,
  error: VendorError,
  attempt: number
): Effect.Effect<Option.Option<PassedOn>> => {
  const reason = skipReasonOf(error)
  return reason === undefined
    ? Effect.succeedNone
    : Effect.map(DateTime.now, (now) => passOn(task, reason, now, attempt))
}

/** Whether a submit was of a model that was passed over: the next one is the first of its model. */
export const isOfSkipped = ({ candidates }: TaskRow, attempt: number): boolean =>
  candidates?.some(({ skipped }) => skipped?.attempt === attempt) === true
