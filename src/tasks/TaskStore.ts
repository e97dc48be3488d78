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
import type { Handle } from "../vendors/VendorClient.ts"
import type { Owned, StoredInputs, VendorJob } from "./running/OwnedTask.ts"
import type { TaskQueue } from "./running/TaskQueue.ts"

/** All that one transaction writes when a task is accepted. ARCHITECTURE.md#rules-of-safety */
/** The webhook of a task, and the secret that signs it if its user has none. */
export interface AcceptedWebhook extends TaskWebhook {
  /** Encrypted. */
  readonly secret: Uint8Array
  readonly secretPreview: string
}

export interface Acceptance {
  readonly taskId: TaskId
  readonly userId: UserId
  readonly apiKeyId: string | null
  readonly vendor: string
  readonly model: string
  readonly action: TaskAction
  readonly resultKind: ResultKind
  readonly body: Schema.Json
  /** As the client sent it; absent if it sent none. */
  readonly metadata?: Metadata | null
  readonly webhook?: AcceptedWebhook | null
  readonly sandbox: boolean
  /** The amount to hold; for an alias the price of its most expensive model. */
  readonly price: Credits.Credits
  /** The models of an alias. */
  readonly candidates?: ReadonlyArray<Candidate>
  /** The names that the API key must allow; absent: the model's. */
  readonly allowedBy?: ReadonlyArray<string>
  /** The number of the catalog with which it was accepted. */
  readonly catalogId?: number | null
  readonly deadlineAt: DateTime.Utc
  readonly traceId: string
  /** The batch that creates it. */
  readonly batchId?: TaskBatchId
  readonly now: DateTime.Utc
  readonly event: EventBody
  /** The queue of its first step. */
  readonly queue: string
  /** The process that takes the first step at once, as epoch 1; absent: the process that claims the task. */
  readonly owner?: string
  /** Most unfinished tasks of the API key; 0: no limit. */
  readonly runningMax: number
  /** The same of all keys of the user together; absent: no limit. */
  readonly userRunningMax?: number
  readonly idempotency: Option.Option<{
    readonly key: string
    readonly requestHash: Uint8Array
    /** The body of the 202, returned again to a repeated request. */
    readonly responseBody: string
    /** Records older than this have expired. */
    readonly since: DateTime.Utc
  }>
}

/** The first response to an idempotency key. */
export interface Replayed {
  readonly _tag: "Replayed"
  readonly requestHash: Uint8Array
  readonly status: number
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
  /** The API key was revoked or disabled, or has expired, since the request was admitted. */
  | { readonly _tag: "KeyRefused" }
  /** The API key no longer allows the model. */
  | { readonly _tag: "ModelNotAllowed" }
  /** The API key or its user has the maximum number of unfinished tasks. */
  | { readonly _tag: "TooManyRunning"; readonly of: "API key" | "user" }

/**
 * The tokens for which a response is charged. `counted`: the gateway counted them, because the vendor reported no
 * plausible figures.
 */
export interface TaskUsage extends TokenUsage {
  readonly counted: boolean
  /** The model whose price was charged, if it is not the requested one. */
  readonly pricedAs?: string
  /** Of a batch whose requests name several models: what each has of it, first that of the task. */
  readonly models?: ReadonlyArray<ModelUsage>
}

export interface ModelUsage extends TokenUsage {
  readonly model: string
  /** Micro-credits in decimal digits. */
  readonly captured: string
}

/** The end of a task. `epoch` is absent if something outside its run ends it (cancel). */
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
        /** The charge of a cancelled response, which may have cost something. */
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

/** A run, seen from an epoch: still owned by it, acquired by a later one, or ended. */
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
  /** The progress of this process; absent: the store is trusted. docs/standbys.md#how-it-is-noticed */
  readonly progress?: StoreProgress
}

/** The outcome of a submit, as stored. */
export interface AttemptOutcome {
  readonly n: number
  /** `submitting`: the response was lost, and the gateway searches for the job. */
  readonly state: "submitting" | "submitted" | "refused" | "ambiguous"
  readonly handle: Handle | null
  readonly failure: string | null
}

/** When and from which queue a task continues. Until then it has no owner. */
export interface NextStep {
  /** At the task's deadline at the latest. */
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
  readonly now: DateTime.Utc
}

/** The new state of an alias's models, and the index of the current one. */
export interface Pass {
  readonly candidates: ReadonlyArray<Candidate>
  readonly candidate: number
}

/** Which due tasks to claim, and for whom. */
export interface Claim {
  readonly queue: string
  readonly limit: number
  readonly owner: string
  readonly now: DateTime.Utc
  /** Claims only these tasks, from owners without a heartbeat since then. */
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
     * Accepts tasks of one user at one price together, all or none. The first one has the idempotency record with the
     * total cost.
     */
    readonly accept: (
      together: Arr.NonEmptyReadonlyArray<Acceptance>
    ) => Effect.Effect<AcceptOutcome, StoreUnavailable>
    /** The first response to an idempotency key of the user, unless it is older than `since` or the API key has ended. */
    readonly findReplay: (repeat: {
      readonly userId: UserId
      readonly apiKeyId: string
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
    /** Claims due tasks, oldest due time first, and fences their earlier owners. */
    readonly claim: (claim: Claim) => Effect.Effect<ReadonlyArray<Owned>, StoreUnavailable>
    /**
     * The row of a task whose job has ended; of the body only `n`, which is all that its end needs unless its price
     * reads more (`isWhole`). `None`: it no longer exists, or this program cannot read it.
     */
    readonly ofJob: (
      id: TaskId,
      isWhole?: boolean
    ) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    /** The state of the run of this epoch. */
    readonly runState: (id: TaskId, epoch: number) => Effect.Effect<RunState, StoreUnavailable>
    /** All tasks that this owner has in the store, whether it runs them or not. */
    readonly ownedBy: (
      owner: string
    ) => Effect.Effect<
      ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>,
      StoreUnavailable
    >
    /** Gives up ownership before the end of the step, which is due again at once. */
    readonly releaseRun: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /** Releases the run because this process is stopping: the other processes take their shares. */
    readonly handOver: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /**
     * The share of a process, by queue, in the tasks that were handed over, or whose owners have no heartbeat since
     * then. At most this many of each earlier owner.
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
    /** Makes a task due now; a task in hand becomes due when its step has ended. Used for a vendor's callback. */
    readonly makeDue: (
      id: TaskId,
      now: DateTime.Utc
    ) => Effect.Effect<"Due" | "InHand" | "Ended", StoreUnavailable>
    readonly finish: (finish: Finish) => Effect.Effect<FinishOutcome, StoreUnavailable>
    readonly find: (id: TaskId) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    /** The same without the body: what GET needs. */
    readonly view: (id: TaskId) => Effect.Effect<Option.Option<TaskView>, StoreUnavailable>
    /** Those that exist, in any order. */
    readonly views: (
      ids: ReadonlyArray<TaskId>
    ) => Effect.Effect<ReadonlyArray<TaskView>, StoreUnavailable>
    /** The vendor's job that was last submitted for a task, if its handle is known. */
    readonly job: (id: TaskId) => Effect.Effect<Option.Option<VendorJob>, StoreUnavailable>
    /**
     * Frees tasks that were handed over, or whose owners have no heartbeat since then, at most this many; returns the
     * number.
     */
    readonly releaseOrphans: (
      heartbeatSince: DateTime.Utc,
      limit: number
    ) => Effect.Effect<number, StoreUnavailable>
  }
>()("gateway/tasks/TaskStore") {}
