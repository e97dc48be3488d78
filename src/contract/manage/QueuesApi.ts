import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { manageErrors as error } from "../ManageErrors.ts"

export const Queues = Schema.Struct({
  tasks: Schema.Struct({
    unfinished: Schema.Int,
    /** Of these: wait for a slot at the vendor. */
    waiting_for_slot: Schema.Int,
    /** Of these: no process runs them now. */
    unowned: Schema.Int,
    /** Of these: their next step is due and has not begun. */
    due: Schema.Int,
    /** How long the oldest one has been due, in milliseconds. */
    lateness_ms: Schema.Int
  }),
  deliveries: Schema.Struct({
    unfinished: Schema.Int,
    /** Of these: their next attempt is due and has not begun. */
    due: Schema.Int,
    /** Of these: an attempt is under way. */
    in_progress: Schema.Int,
    /** How long the oldest one has been due, in milliseconds. */
    lateness_ms: Schema.Int
  }),
  wallets: Schema.Struct({
    /** Wallets that differ from their ledger or their holds; must be 0. */
    drift: Schema.Int,
    /** Whose they are, 20 at most. */
    drifting_user_ids: Schema.Array(UserId),
    /** Spend limits of keys that count what cannot be right; must be 0. */
    budget_drift: Schema.Int,
    audited_at: Schema.NullOr(Timestamp),
    /** When spend limits were last compared. */
    budgets_audited_at: Schema.NullOr(Timestamp)
  }),
  store: Schema.Struct({
    /** When the store was last found, or marked, as one that went back in time; null: it was not. */
    restored_at: Schema.NullOr(Timestamp),
    /** The newest heartbeat that it knew of then: what was written later is lost. */
    trusted_until: Schema.NullOr(Timestamp),
    /** Unfinished tasks whose submit may have been lost with it. */
    tasks_in_doubt: Schema.Int
  })
}).annotate({ identifier: "Queues" })

/** The operator's view of what waits. docs/reference/http.md#queues */
export class QueuesApi extends HttpApiGroup.make("queues").add(
  HttpApiEndpoint.get("getQueues", "/queues", { success: Queues, error })
) {}
