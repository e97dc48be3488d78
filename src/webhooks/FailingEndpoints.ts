import { DateTime, Effect } from "effect"
import {
  webhookFailingHours,
  webhookFailingMax,
  webhookFailingSeconds
} from "../domain/limits/Limits.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { EndpointStore } from "./EndpointStore.ts"
import { webhookFailing } from "./Events.ts"

/**
 * Notifies a user's other endpoints when one has been failing for a day. A duty of one process.
 * docs/reference/webhooks.md#failing-endpoints
 */
export const layer = Duty.layer(
  { name: "failing endpoints", seconds: webhookFailingSeconds },
  Effect.gen(function* () {
    const store = yield* EndpointStore
    const notifier = yield* WorkNotifier
    const now = yield* DateTime.now
    const since = DateTime.subtract(now, { hours: webhookFailingHours })
    for (const endpoint of yield* store.failing(since, webhookFailingMax)) {
      const event = webhookFailing(endpoint, now)
      yield* notifier.notifyEndpoints(yield* store.publishFailing(endpoint, event, now))
    }
  })
)
