import { Effect, Option } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Api } from "../../../contract/Api.ts"
import { Queues } from "../../../tasks/history/Queues.ts"
import { Wallet } from "../../../wallet/Wallet.ts"
import { requireOperator } from "../../server/access/Authentication.ts"

/** The operator's view of waiting work. */
export const layer = HttpApiBuilder.group(
  Api,
  "queues",
  Effect.fnUntraced(function* (handlers) {
    const queues = yield* Queues
    const wallet = yield* Wallet
    return handlers.handleAll({
      getQueues: Effect.fnUntraced(function* () {
        yield* requireOperator
        const now = yield* queues.depths
        return {
          tasks: {
            unfinished: now.tasks,
            waiting_for_slot: now.tasksWaiting,
            unowned: now.tasksUnowned,
            due: now.tasksDue,
            lateness_ms: now.tasksLatenessMillis
          },
          deliveries: {
            unfinished: now.deliveries,
            due: now.deliveriesDue,
            in_progress: now.deliveriesClaimed,
            lateness_ms: now.latenessMillis
          },
          wallets: {
            drift: yield* wallet.drift,
            drifting_user_ids: yield* wallet.drifting,
            budget_drift: yield* wallet.budgetDrift,
            audited_at: Option.getOrNull(yield* wallet.auditedAt),
            budgets_audited_at: Option.getOrNull(yield* wallet.budgetsAuditedAt)
          },
          store: {
            restored_at: now.restoredAt,
            trusted_until: now.trustedUntil,
            tasks_in_doubt: now.tasksInDoubt
          }
        }
      })
    })
  })
)
