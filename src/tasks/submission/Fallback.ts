import { DateTime, Effect, Option } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { nextPlace } from "../../domain/task/Candidate.ts"
import type { SkipReason } from "../../domain/task/Candidate.ts"
import type { VendorError, VendorErrorClass } from "../../vendors/VendorError.ts"
import { submitQueue } from "../running/TaskQueue.ts"
import type { NextStep, Pass } from "../TaskStore.ts"

/** How an alias's task continues with its next model. Both parts are written in one transaction. */
export interface PassedOn {
  readonly next: NextStep
  readonly pass: Pass
}

/**
 * The failures after which a submit certainly bought nothing, so that another model may be tried. Not included:
 * refusals of the request itself (`CONTENT`, `FATAL_CLIENT`, `MEDIA`; a refusal that the adapter does not recognize may
 * also concern the content) and every unknown outcome. docs/reference/aliases.md#when-the-next-model-is-tried
 */
const reasons: { readonly [kind in VendorErrorClass]?: SkipReason } = {
  RATE_LIMITED: "rate_limited",
  RETRYABLE: "unavailable",
  OPERATOR: "account_refused",
  GONE: "model_gone"
}

/** The reasons why no account can take a submit, known before anything is sent. */
const reasonsBefore: { readonly [kind in VendorErrorClass]?: SkipReason } = {
  RATE_LIMITED: "rate_limited",
  RETRYABLE: "circuit_open",
  OPERATOR: "no_account"
}

export const skipReasonOf = ({ class: kind, httpStatus }: VendorError): SkipReason | undefined => {
  const isOfAccount = kind === "OPERATOR" || kind === "GONE"
  // Without an HTTP status, this may be the failure of a job that was accepted
  return isOfAccount && httpStatus === undefined ? undefined : reasons[kind]
}

export const skipReasonBefore = ({ class: kind }: VendorError): SkipReason | undefined =>
  reasonsBefore[kind]

/**
 * Moves the task to its next model and records why the previous one was skipped. `None`: there is no next model.
 * `attempt` is the refused submit. Media by URL are fetched again, because the next model's rules may differ.
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

/** The same after a refused submit, provided that nothing can have been bought. */
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

/** Whether a submit went to a model that has since been skipped. The next submit is then the first to its model. */
export const isOfSkipped = ({ candidates }: TaskRow, attempt: number): boolean =>
  candidates?.some(({ skipped }) => skipped?.attempt === attempt) === true
