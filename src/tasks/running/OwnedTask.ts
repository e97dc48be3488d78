import { Schema } from "effect"
import type { DateTime, Option } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { Handle } from "../../vendors/VendorClient.ts"

/** A submitted job, and the account at which it runs. */
export const VendorJob = Schema.Struct({
  accountId: Schema.String,
  handle: Handle
})
export type VendorJob = typeof VendorJob.Type

/** The newest vendor attempt of a task. */
export interface NewestAttempt {
  readonly n: number
  readonly state: "submitting" | "submitted" | "refused" | "ambiguous"
  readonly accountId: string
  readonly startedAt: DateTime.Utc
  /** The vendor's failure with its class, as stored by `endStep`. */
  readonly failure: string | null
}

/**
 * Artifacts of fetched media, by JSON pointer into the body. The value is an artifact id, or a reference
 * (`artifact:art_…`) if the file at the URL contains more than the medium; the artifact is then submitted instead of
 * the URL.
 */
export type StoredInputs = Readonly<Record<string, string>>

/** A task in hand, with its owner's epoch, which every later write includes. ARCHITECTURE.md#rules-of-safety */
interface InHand {
  readonly epoch: number
  readonly deadlineAt: DateTime.Utc
  /** The queue from which it was claimed. Under a rate limit the claim is a permit for one call. */
  readonly queue: string
  /** When the step may begin. */
  readonly startsAt: DateTime.Utc
}

/** A task whose job has not been submitted, or was submitted without a response. */
export interface OwnedTask extends InHand {
  readonly task: TaskRow
  readonly attempt: Option.Option<NewestAttempt>
  /** The account for which the task waited. */
  readonly accountId: string | null
  readonly slotHeld: boolean
  readonly inputs: StoredInputs
  /** The store may have lost its newest submit. docs/standbys.md#tasks-in-doubt */
  readonly inDoubt: boolean
  readonly job?: undefined
}

/**
 * The fields of a task that a poll needs. Kept few, because most polls find the job still running, and each one reads
 * and decodes a row.
 */
export const polledFields = [
  "id",
  "userId",
  "vendor",
  "model",
  "action",
  "catalogId",
  "candidates",
  "candidate",
  "traceId"
] as const satisfies ReadonlyArray<keyof TaskRow>
export type PolledTask = Pick<TaskRow, (typeof polledFields)[number]>

/** A task whose job is at the vendor. The whole row is read only when the job has ended. ADR 0149 */
export interface OwnedJob extends InHand {
  readonly task: PolledTask
  readonly job: VendorJob
}

export type Owned = OwnedTask | OwnedJob
