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

/** A task that its owner runs: every later write names the epoch (architecture, rule 2). */
export class OwnedTask extends Schema.Class<OwnedTask>("OwnedTask")({
  task: TaskRow,
  epoch: Schema.Int,
  deadlineAt: Time,
  /** The newest vendor attempt, if one was begun. */
  attempt: Schema.Option(
    Schema.Struct({
      n: Schema.Int,
      state: Schema.Literals(["submitting", "submitted", "refused", "ambiguous"]),
      accountId: Schema.String,
      startedAt: Time,
      handle: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
      /** What `endAttempt` was told: the vendor's failure with its class. */
      failure: Schema.NullOr(Schema.String)
    })
  )
}) {}

/** All that is written when a task is accepted, in one transaction (architecture, rule 1). */
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
  readonly deadlineAt: DateTime.Utc
  readonly traceId: string
  readonly now: DateTime.Utc
  readonly event: EventBody
  /** Unfinished tasks that the key may have at once; 0: no limit. */
  readonly runningMax: number
  readonly idempotency: Option.Option<{
    readonly key: string
    readonly requestHash: Uint8Array
    /** The body of the 202, given again to a repeated request. */
    readonly answer: string
    /** Records older than this are forgotten. */
    readonly since: DateTime.Utc
  }>
}

/** The first answer behind an idempotency key. */
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
  /** The key has as many unfinished tasks as it may. */
  | { readonly _tag: "TooManyRunning" }

/** How a task ends. `epoch` is absent when somebody else than the owner ends it (cancel). */
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
  /** Makes the `balance.low` event when this charge crosses the threshold. */
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
  /** Somebody else ended it, or owns it now: nothing was changed. */
  | { readonly _tag: "Fenced" }

/** A run's place: still its owner's, taken by another one, or ended with its task. */
export type Standing = "Owned" | "Taken" | "Ended"

/** A submit about to be paid for. Contract 7: committed before the POST. */
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

/** Tasks, their runs and vendor attempts. The only writer of those tables. */
export class TaskStore extends Context.Service<
  TaskStore,
  {
    readonly accept: (acceptance: Acceptance) => Effect.Effect<AcceptOutcome, StoreUnavailable>
    /** What a key of the user was answered, if that is not older than `since`. */
    readonly answered: (
      userId: UserId,
      key: string,
      since: DateTime.Utc
    ) => Effect.Effect<Option.Option<Replayed>, StoreUnavailable>
    /** Takes an unowned task and fences whoever had it before. `None`: owned, or ended. */
    readonly own: (
      id: TaskId,
      owner: string
    ) => Effect.Effect<Option.Option<OwnedTask>, StoreUnavailable>
    /** Whether the run of this epoch may go on. */
    readonly standing: (id: TaskId, epoch: number) => Effect.Effect<Standing, StoreUnavailable>
    /** All that this owner has by the store, be it run or not. */
    readonly ownedBy: (
      owner: string
    ) => Effect.Effect<
      ReadonlyArray<{ readonly taskId: TaskId; readonly epoch: number }>,
      StoreUnavailable
    >
    /** Gives the task back, so that the next owner starts at once. */
    readonly disown: (id: TaskId, epoch: number) => Effect.Effect<void, StoreUnavailable>
    /** Records the submit and moves `pending` to `processing`. `false`: fenced. */
    readonly beginAttempt: (start: AttemptStart) => Effect.Effect<boolean, StoreUnavailable>
    readonly endAttempt: (end: AttemptEnd) => Effect.Effect<boolean, StoreUnavailable>
    readonly finish: (finish: Finish) => Effect.Effect<FinishOutcome, StoreUnavailable>
    readonly find: (id: TaskId) => Effect.Effect<Option.Option<TaskRow>, StoreUnavailable>
    /** The same without the body: what GET needs. */
    readonly view: (id: TaskId) => Effect.Effect<Option.Option<TaskView>, StoreUnavailable>
    /** The vendor's job that was last bought for a task, if its handle is known. */
    readonly job: (id: TaskId) => Effect.Effect<Option.Option<VendorJob>, StoreUnavailable>
    /** Clears owners without a heartbeat since then, and lists what nobody owns. */
    readonly sweep: (
      heartbeatSince: DateTime.Utc,
      limit: number
    ) => Effect.Effect<ReadonlyArray<TaskId>, StoreUnavailable>
  }
>()("gateway/tasks/TaskStore") {}
