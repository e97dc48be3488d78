import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { manageErrors as error } from "../ManageErrors.ts"

export const Queues = Schema.Struct({
  tasks: Schema.Struct({
    unfinished: Schema.Int,
    /** How many of these wait for a slot at the vendor. */
    waiting_for_slot: Schema.Int,
    /** How many of these no process has in hand now. */
    unowned: Schema.Int,
    /** How many of these have a next step that is due and has not begun. */
    due: Schema.Int,
    /** How long the oldest one has been due, in milliseconds. */
    lateness_ms: Schema.Int
  }),
  deliveries: Schema.Struct({
    unfinished: Schema.Int,
    /** How many of these have a next attempt that is due and has not begun. */
    due: Schema.Int,
    /** How many of these have an attempt in progress. */
    in_progress: Schema.Int,
    /** How long the oldest one has been due, in milliseconds. */
    lateness_ms: Schema.Int
  }),
  wallets: Schema.Struct({
    /** Wallets that differ from their ledger or their holds; must be 0. */
    drift: Schema.Int,
    /** Their users, at most 20. */
    drifting_user_ids: Schema.Array(UserId),
    /** Spend limits of keys with impossible counts; must be 0. */
    budget_drift: Schema.Int,
    audited_at: Schema.NullOr(Timestamp),
    /** When spend limits were last compared. */
    budgets_audited_at: Schema.NullOr(Timestamp)
  }),
  store: Schema.Struct({
    /** When the store was last found, or marked, to have gone back in time; null if it never was. */
    restored_at: Schema.NullOr(Timestamp),
    /** The newest heartbeat that the store had then. Later writes are lost. */
    trusted_until: Schema.NullOr(Timestamp),
    /** Unfinished tasks whose submit may have been lost. */
    tasks_in_doubt: Schema.Int
  })
}).annotate({ identifier: "Queues" })

/** The operator's view of waiting work. docs/reference/http.md#queues */
export class QueuesApi extends HttpApiGroup.make("queues").add(
  HttpApiEndpoint.get("getQueues", "/queues", { success: Queues, error })
) {}
