import { Effect } from "effect"
import { Artifacts } from "../../artifacts/Artifacts.ts"
import { Files } from "../../artifacts/files/Files.ts"
import { AccountControl } from "../../process/accounts/AccountControl.ts"
import { LogRetention } from "../../process/retention/LogRetention.ts"
import { CallContents } from "../../users/contents/CallContents.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import { Sessions } from "../../users/Sessions.ts"
import { UsageReport } from "../../wallet/UsageReport.ts"
import { Callbacks } from "../callbacks/Callbacks.ts"
import { TaskRetention } from "./TaskRetention.ts"

/** Deletes what has expired. docs/reference/privacy.md#retention */
export const retentionJobs = Effect.gen(function* () {
  const accounts = yield* AccountControl
  const artifacts = yield* Artifacts
  const callbacks = yield* Callbacks
  const contents = yield* CallContents
  const files = yield* Files
  const log = yield* LogRetention
  const quotas = yield* RequestQuotas
  const sessions = yield* Sessions
  const tasks = yield* TaskRetention
  const usage = yield* UsageReport
  return [
    { name: "delivery log", run: log.maintain },
    { name: "audit log", run: log.maintainAudit },
    { name: "expired artifacts", run: artifacts.removeExpired },
    { name: "expired files", run: files.removeDue },
    { name: "spend of accounts", run: accounts.deleteOld },
    { name: "old callbacks", run: callbacks.deleteExpired },
    { name: "old tasks", run: tasks.maintain },
    { name: "contents of calls", run: contents.removeOld },
    { name: "full request buckets", run: quotas.deleteFull },
    { name: "ended sessions", run: sessions.deleteExpired },
    { name: "usage by hour", run: usage.removeOld }
  ]
})
