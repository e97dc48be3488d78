import { DateTime, Effect } from "effect"
import { keyExpiringDays, keyExpiringMax, keyExpiringSeconds } from "../domain/limits/Limits.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { keyExpiring } from "./Events.ts"
import { ExpiringKeyStore } from "./ExpiringKeyStore.ts"

/**
 * Notifies a user's endpoints of keys that expire within a week. A duty of one process.
 * docs/reference/webhooks.md#expiring-keys
 */
export const layer = Duty.layer(
  { name: "expiring keys", seconds: keyExpiringSeconds },
  Effect.gen(function* () {
    const store = yield* ExpiringKeyStore
    const notifier = yield* WorkNotifier
    const now = yield* DateTime.now
    for (const key of yield* store.expiring(now, keyExpiringDays, keyExpiringMax)) {
      yield* notifier.notifyEndpoints(yield* store.publish(key, keyExpiring(key, now), now))
    }
  })
)
