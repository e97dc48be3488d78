import { Context, Schema } from "effect"
import type { DateTime, Effect, Option } from "effect"
import { Time } from "../db/Rows.ts"
import { TaskRow } from "../db/TaskRow.ts"
import type { TaskView } from "../db/TaskRow.ts"
import type * as Credits from "../domain/Credits.ts"
import type { EventBody } from "../domain/Event.ts"
import type { EndpointId, TaskId, UserId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import type { ResultKind, TaskError } from "../domain/Task.ts"

/** A task with its owner's epoch, which every later write names. ARCHITECTURE.md#rules-of-safety */
export class OwnedTask extends Schema.Class<OwnedTask>("OwnedTask")({
  task: TaskRow,
  epoch: Schema.Int,
  deadlineAt: Time,
  /** The newest vendor attempt, if there is one. */
  attempt: Schema.Option(
    Schema.Struct({
      n: Schema.Int,
      state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
      accountId: Schema.String,
      startedAt: Time,
      handle: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
      /** As `endAttempt` stored it: the vendor's failure with its class. */
      failure: Schema.NullOr(Schema.String)
    })
  )
}) {}

/** All that one transaction writes when a task is accepted. ARCHITECTURE.md#rules-of-safety */
export interface Acceptance {
  readonly taskId: TaskId
  readonly userId: UserId
  readonly apiKeyId: string | null
  readonly vendor: string
  readonly model: string
  readonly action: "generation" | "edit"
  readonly resultKind: ResultKind
  readonly body: Schema.Json
  readonly sandbox: boolean
  readonly price: Credits.Credits
  /** The number of the catalog that it was accepted with. */
  readonly catalogId?: number | null
  readonly deadlineAt: DateTime.Utc
  readonly traceId: string
  readonly now: DateTime.Utc
  readonly event: EventBody
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
    }
  | Replayed
  | { readonly _tag: "BalanceTooLow" }
  /** The API key has the maximum of unfinished tasks. */
  | { readonly _tag: "TooManyRunning"; readonly of: "API key" | "user" }

/** The end of a task. `epoch` is absent when it is ended from outside its run (cancel). */
export interface Finish {
  readonly taskId: TaskId
  readonly epoch: Option.Option<number>
  readonly outcome:
    | {
        readonly status: "completed"
        readonly result: ReadonlyArray<string>
        readonly captured: Credits.Credits
      }
    | { readonly status: "failed"; readonly error: TaskError }
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
  readonly now: DateTime.Utc
}

export interface AttemptEnd {
  readonly taskId: TaskId
  readonly epoch: number
  readonly n: number
  readonly state: "submitted" | "refused" | "ambiguous"
  readonly handle: Schema.Json
  readonly failure: string | null
  readonly now: DateTime.Utc
}

/** A job at a vendor, and the account that owns it. */
export const VendorJob = Schema.Struct({
  accountId: Schema.String,
  handle: Schema.Record(Schema.String, Schema.Json)
})
export type VendorJob = typeof VendorJob.Type

/** Tasks, their runs and vendor attempts. The only writer of these tables. */
export class TaskStore extends Context.Service<
  TaskStore,
  {
    readonly accept: (acceptance: Acceptance) => Effect.Effect<AcceptOutcome, StoreUnavailable>
    /** The first response to an idempotency key of the user, if it is not older than `since`. */
    readonly findReplay: (
      userId: UserId,
      key: string,
      since: DateTime.Utc
    ) => Effect.Effect<Option.Option<Replayed>, StoreUnavailable>
    /**
     * Acquires a task without an owner and fences earlier owners. `None`:
     * it has an owner, or has ended.
     */
    readonly acquireRun: (
      id: TaskId,
      owner: string
    ) => Effect.Effect<Option.Option<OwnedTask>, StoreUnavailable>
    /** The state of the run of this epoch. */
    readonly runState: (id: TaskId, epoch: number) => Effect.Effect<RunState, StoreUnavailable>
    /** All tasks that this owner has in the store, whether it runs them or not. */
    readonly ownedBy: (
      owner: string
    ) => Effect.Effect<
      ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>,
      StoreUnavailable
    >
    /** Gives up ownership, so that the next owner starts at once. */
    readonly releaseRun: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /** Records the submit and moves `pending` to `processing`. `false`: fenced. */
    readonly beginAttempt: (start: AttemptStart) => Effect.Effect<boolean, StoreUnavailable>
    readonly endAttempt: (end: AttemptEnd) => Effect.Effect<boolean, StoreUnavailable>
    readonly finish: (finish: Finish) => Effect.Effect<FinishOutcome, StoreUnavailable>
    readonly find: (id: TaskId) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    /** The same without the body: what GET needs. */
    readonly view: (id: TaskId) => Effect.Effect<Option.Option<TaskView>, StoreUnavailable>
    /** The vendor's job that was last submitted for a task, if its handle is known. */
    readonly job: (id: TaskId) => Effect.Effect<Option.Option<VendorJob>, StoreUnavailable>
    /** Clears owners without a heartbeat since then; returns the tasks without an owner. */
    readonly releaseOrphans: (
      heartbeatSince: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<TaskId>, StoreUnavailable>
  }
>()("gateway/tasks/TaskStore") {}
