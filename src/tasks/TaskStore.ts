import { Context } from "effect"
import type { Array as Arr, DateTime, Effect, Option, Schema } from "effect"
import type { TokenUsage } from "../catalog/Price.ts"
import type { TaskRow, TaskView } from "../db/TaskRow.ts"
import type * as Credits from "../domain/Credits.ts"
import type { EventBody } from "../domain/Event.ts"
import type { EndpointId, TaskBatchId, TaskId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { OverSpendLimit } from "../domain/SpendLimit.ts"
import type { Candidate } from "../domain/task/Candidate.ts"
import type { Metadata } from "../domain/task/Metadata.ts"
import type { ResultKind, TaskAction, TaskError } from "../domain/task/Task.ts"
import type { TaskWebhook } from "../domain/task/TaskWebhook.ts"
import type { StoreProgress } from "../process/heartbeat/StoreProgress.ts"
import type { KeyEnding } from "../users/ApiKeys.ts"
import type { Handle } from "../vendors/VendorClient.ts"
import type { Owned, StoredInputs, VendorJob } from "./running/OwnedTask.ts"
import type { TaskQueue } from "./running/TaskQueue.ts"

/** The webhook of a task, and the secret that signs it if its user has none. */
export interface AcceptedWebhook extends TaskWebhook {
  /** Encrypted. */
  readonly secret: Uint8Array
  readonly secretPreview: string
}

/** All that one transaction writes when a task is accepted. ARCHITECTURE.md#rules-of-safety */
export interface Acceptance {
  readonly taskId: TaskId
  readonly userId: UserId
  readonly apiKeyId: string | null
  /** Identifies the secret with which the caller authenticated. Absent: not checked. */
  readonly rotation?: number
  readonly vendor: string
  readonly model: string
  readonly action: TaskAction
  readonly resultKind: ResultKind
  readonly body: Schema.Json
  /** Exactly as the client sent it; absent if the client sent none. */
  readonly metadata?: Metadata | null
  readonly webhook?: AcceptedWebhook | null
  readonly sandbox: boolean
  /** The amount to hold; for an alias the price of its most expensive model. */
  readonly price: Credits.Credits
  /** The models of an alias. */
  readonly candidates?: ReadonlyArray<Candidate>
  /** The model names that the API key must allow. Absent: the name of the task's model. */
  readonly allowedBy?: ReadonlyArray<string>
  /** When the file that the body names expires. Absent: its expiry stays. */
  readonly fileUntil?: DateTime.Utc
  /** The id of the catalog with which the task was accepted. */
  readonly catalogId?: number | null
  readonly deadlineAt: DateTime.Utc
  readonly traceId: string
  /** The batch that contains the task. */
  readonly batchId?: TaskBatchId
  readonly now: DateTime.Utc
  readonly event: EventBody
  /** The queue of its first step. */
  readonly queue: string
  /** The process that takes the first step at once, as epoch 1. Absent: any process may claim the task. */
  readonly owner?: string
  /** The maximum number of unfinished tasks of the API key; 0 means no limit. */
  readonly runningMax: number
  /** The maximum number of unfinished tasks of all the user's keys together. Absent: no limit. */
  readonly userRunningMax?: number
  readonly idempotency: Option.Option<{
    readonly key: string
    readonly requestHash: Uint8Array
    /** The body of the 202, which is sent again when the request is repeated. */
    readonly responseBody: string
    /** Idempotency records created before this time have expired. */
    readonly since: DateTime.Utc
  }>
}

/** The first response to an idempotency key. */
export interface Replayed {
  readonly _tag: "Replayed"
  readonly requestHash: Uint8Array
  readonly body: string
  readonly cost: Credits.Credits
  readonly balance: Credits.Credits
}

export type AcceptOutcome =
  | {
      readonly _tag: "Accepted"
      readonly balance: Credits.Credits
      readonly endpoints: ReadonlyArray<EndpointId>
      /** Credits left of the API key's spend limit; `null` without one. */
      readonly left: Credits.Credits | null
    }
  | Replayed
  | { readonly _tag: "BalanceTooLow" }
  | OverSpendLimit
  /** The API key or its secret has ended since the request was admitted. */
  | { readonly _tag: "KeyEnded"; readonly how: typeof KeyEnding.Type }
  /** The API key no longer allows the model. */
  | { readonly _tag: "ModelNotAllowed" }
  /** The file that the batch names was deleted, or has expired, while it was read. */
  | { readonly _tag: "FileGone" }
  /** The API key or its user has reached the maximum number of unfinished tasks. */
  | { readonly _tag: "TooManyRunning"; readonly of: "API key" | "user" }

/**
 * The tokens for which a response is charged. `counted`: the gateway counted them, because the vendor reported no
 * plausible figures.
 */
export interface TaskUsage extends TokenUsage {
  readonly counted: boolean
  /** The model at whose price the response was charged, if that is not the requested model. */
  readonly pricedAs?: string
  /** The usage of each model, for a batch whose requests name several. The first is the task's model. */
  readonly models?: ReadonlyArray<ModelUsage>
}

export interface ModelUsage extends TokenUsage {
  readonly model: string
  /** Micro-credits in decimal digits. */
  readonly captured: string
}

/** Ends a task. `epoch` is absent when something other than its run ends it (a cancel). */
export interface Finish {
  readonly taskId: TaskId
  readonly epoch: Option.Option<number>
  readonly outcome:
    | {
        readonly status: "completed"
        readonly result: ReadonlyArray<string>
        readonly captured: Credits.Credits
        readonly usage?: TaskUsage | undefined
      }
    | {
        readonly status: "failed"
        readonly error: TaskError
        /** The charge for what a cancelled response has already used, if anything. */
        readonly charge?:
          | { readonly captured: Credits.Credits; readonly usage?: TaskUsage | undefined }
          | undefined
      }
  readonly event: EventBody
  /** Makes the `balance.low` event, for a charge that crosses the threshold. */
  readonly alert: (wallet: {
    readonly userId: UserId
    readonly available: Credits.Credits
    readonly threshold: Credits.Credits
  }) => EventBody
  readonly throttleSeconds: number
  readonly now: DateTime.Utc
}

export type FinishOutcome =
  | { readonly _tag: "Finished"; readonly endpoints: ReadonlyArray<EndpointId> }
  /** The task has already ended, or another process owns it: nothing was changed. */
  | { readonly _tag: "Fenced" }

/** A run as the owner with a given epoch sees it: still owned, taken by a later epoch, or ended. */
export type RunState = "Owned" | "Taken" | "Ended"

/** A paid submit, committed before its POST. docs/reference/vendors.md#paid-submit-protocol */
export interface AttemptStart {
  readonly taskId: TaskId
  readonly epoch: number
  readonly n: number
  readonly vendor: string
  readonly accountId: string
  readonly bodyHash: Uint8Array
  /** The queue from which the task is claimed if its owner dies now. */
  readonly queue: TaskQueue
  readonly now: DateTime.Utc
  /** The progress that this process has seen. Absent: the store is trusted. docs/standbys.md#how-it-is-noticed */
  readonly progress?: StoreProgress
  /** The account reports the progress of its jobs, so the task starts at 0 per cent. */
  readonly showsProgress?: boolean | undefined
}

/** The outcome of a submit, as stored. */
export interface AttemptOutcome {
  readonly n: number
  /** `submitting`: the response was lost, and the gateway searches for the job. */
  readonly state: "submitting" | "submitted" | "refused" | "ambiguous"
  readonly handle: Handle | null
  readonly failure: string | null
}

/** When the task continues, and in which queue. It has no owner until then. */
export interface NextStep {
  /** Never after the task's deadline. */
  readonly dueAt: DateTime.Utc
  readonly queue: TaskQueue
  /** The account for the next submit. */
  readonly accountId?: string
  readonly inputs?: StoredInputs
}

/** The end of a step, or of the submit within it. Without `next` the owner continues. */
export interface StepEnd {
  readonly taskId: TaskId
  readonly epoch: number
  readonly attempt?: AttemptOutcome
  readonly next?: NextStep
  /** The task moves to another model of its alias. */
  readonly pass?: Pass
  /** In per cent. */
  readonly progress?: number | undefined
  readonly now: DateTime.Utc
}

/** The new state of an alias's models, and the index of the current one. */
export interface Pass {
  readonly candidates: ReadonlyArray<Candidate>
  readonly candidate: number
}

/** Which due tasks to claim, and the process that claims them. */
export interface Claim {
  readonly queue: string
  readonly limit: number
  readonly owner: string
  readonly now: DateTime.Utc
  /** Claims only these tasks, and only from owners without a heartbeat since this time. */
  readonly share?: {
    readonly tasks: ReadonlyArray<TaskId>
    readonly aliveSince: DateTime.Utc
  }
}

/** Tasks, their runs and vendor attempts. The only writer of these tables. */
export class TaskStore extends Context.Service<
  TaskStore,
  {
    /**
     * Accepts tasks of one user at one price together, all or none. The idempotency record, with the total cost, is
     * stored with the first one.
     */
    readonly accept: (
      together: Arr.NonEmptyReadonlyArray<Acceptance>
    ) => Effect.Effect<AcceptOutcome, StoreUnavailable>
    /**
     * The first response to the user's idempotency key, unless it is older than `since` or the API key or its secret has
     * ended.
     */
    readonly findReplay: (repeat: {
      readonly userId: UserId
      readonly apiKeyId: string
      readonly rotation: number
      readonly key: string
      readonly since: DateTime.Utc
      readonly now: DateTime.Utc
    }) => Effect.Effect<Option.Option<Replayed>, StoreUnavailable>
    /** Queues with waiting tasks, each with the time of its next claim. */
    readonly queues: (
      now: DateTime.Utc
    ) => Effect.Effect<
      ReadonlyArray<{ readonly queue: string; readonly dueAt: DateTime.Utc }>,
      StoreUnavailable
    >
    /** Claims due tasks, the earliest due time first, and fences their previous owners. */
    readonly claim: (claim: Claim) => Effect.Effect<ReadonlyArray<Owned>, StoreUnavailable>
    /**
     * The row of a task whose job has ended. Its body contains only `n`, which is enough to end the task; `isWhole`
     * reads the whole body, for a price that depends on other fields. `None`: the task no longer exists, or this
     * release cannot read the row.
     */
    readonly ofJob: (
      id: TaskId,
      isWhole?: boolean
    ) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    readonly runState: (id: TaskId, epoch: number) => Effect.Effect<RunState, StoreUnavailable>
    /** All tasks that the store assigns to this owner, whether or not it runs them. */
    readonly ownedBy: (
      owner: string
    ) => Effect.Effect<
      ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>,
      StoreUnavailable
    >
    /** Gives up ownership before the step has ended. The step is due again at once. */
    readonly releaseRun: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /** Releases the run because this process is stopping: the other processes take their shares. */
    readonly handOver: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /**
     * This process's share, by queue, of the tasks that were handed over or whose owners have no heartbeat since this
     * time; at most `limit` tasks of each previous owner.
     */
    readonly share: (
      aliveSince: DateTime.Utc,
      process: string,
      limit: number
    ) => Effect.Effect<
      ReadonlyArray<{ readonly queue: string; readonly tasks: ReadonlyArray<TaskId> }>,
      StoreUnavailable
    >
    /** Records the submit and moves `pending` to `processing`. `false`: fenced. */
    readonly beginAttempt: (start: AttemptStart) => Effect.Effect<boolean, StoreUnavailable>
    /** `false`: fenced, nothing was written. */
    readonly endStep: (end: StepEnd) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Ends a poll whose job is still running. The caller does not wait for the write, which shares a commit with
     * others and is retried until the store is back. `written` is called after the commit; until then the store shows
     * the task as in hand.
     */
    readonly endPoll: (end: StepEnd, written: () => void) => Effect.Effect<void>
    /** Makes a task due now, or at the end of its current step if it is in hand. Used for vendors' callbacks. */
    readonly makeDue: (
      id: TaskId,
      now: DateTime.Utc
    ) => Effect.Effect<"Due" | "InHand" | "Ended", StoreUnavailable>
    readonly finish: (finish: Finish) => Effect.Effect<FinishOutcome, StoreUnavailable>
    readonly find: (id: TaskId) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    /** The task without its body, which is all that a GET returns. */
    readonly view: (id: TaskId) => Effect.Effect<Option.Option<TaskView>, StoreUnavailable>
    /** The tasks of these ids that exist, in any order. */
    readonly views: (
      ids: ReadonlyArray<TaskId>
    ) => Effect.Effect<ReadonlyArray<TaskView>, StoreUnavailable>
    /** The vendor's job that was last submitted for a task, if its handle is known. */
    readonly job: (id: TaskId) => Effect.Effect<Option.Option<VendorJob>, StoreUnavailable>
    /**
     * Frees tasks that were handed over or whose owners have no heartbeat since this time, at most `limit` of them;
     * returns how many.
     */
    readonly releaseOrphans: (
      heartbeatSince: DateTime.Utc,
      limit: number
    ) => Effect.Effect<number, StoreUnavailable>
  }
>()("gateway/tasks/TaskStore") {}
