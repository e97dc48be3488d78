import { Schema } from "effect"
import type { DateTime, Option } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { Handle } from "../../vendors/VendorClient.ts"

/** A job at a vendor, and the account that owns it. */
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
  /** As `endStep` stored it: the vendor's failure with its class. */
  readonly failure: string | null
}

/**
 * Artifacts of media that were fetched, by their JSON pointer in the body: an id, or a reference
 * (`artifact:art_…`) where the URL has more than the medium, so that the artifact is sent in its place.
 */
export type StoredInputs = Readonly<Record<string, string>>

/** A task in hand, with its owner's epoch, which every later write names. ARCHITECTURE.md#rules-of-safety */
interface InHand {
  readonly epoch: number
  readonly deadlineAt: DateTime.Utc
  /** From which it was claimed: under a rate limit the claim is a permit for one call. */
  readonly queue: string
  /** When the step may begin. */
  readonly startsAt: DateTime.Utc
}

/** One whose job is still to be submitted, or was submitted without an answer. */
export interface OwnedTask extends InHand {
  readonly task: TaskRow
  readonly attempt: Option.Option<NewestAttempt>
  /** The account that it has waited for, and whether it holds a slot there. */
  readonly accountId: string | null
  readonly slotHeld: boolean
  readonly inputs: StoredInputs
  /** The store may have lost its newest submit. docs/standbys.md#tasks-in-doubt */
  readonly inDoubt: boolean
  readonly job?: undefined
}

/** What a poll needs of a task: most polls find the job running, and a row is read and decoded for each. */
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

/** One whose job is at the vendor. Its whole row is read when the job has ended. ADR 0149 */
export interface OwnedJob extends InHand {
  readonly task: PolledTask
  readonly job: VendorJob
}

export type Owned = OwnedTask | OwnedJob
