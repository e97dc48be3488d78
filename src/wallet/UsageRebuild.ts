import { Effect } from "effect"
import { usageRebuildSeconds } from "../domain/Limits.ts"
import * as Duty from "../process/Duty.ts"
import { UsageReport } from "./UsageReport.ts"

/**
 * Sums up what was charged before an upgrade, once: a process that dies in between leaves the rest to
 * another one. docs/reference/usage.md#rebuild
 */
export const layer = Duty.layer(
  { name: "usage rebuild", seconds: usageRebuildSeconds },
  Effect.flatMap(UsageReport, (usage) =>
    Effect.tap(usage.rebuildLeft, (steps) =>
      steps === 0 ? Effect.void : Effect.logInfo(`Usage was made anew in ${steps} steps`)
    )
  )
)
