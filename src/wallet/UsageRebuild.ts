import { Duration, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { usageRebuildSeconds } from "../domain/Limits.ts"
import { UsageReport } from "./UsageReport.ts"

/**
 * Sums up what was charged before an upgrade, once: a process that dies in between leaves the rest to
 * another one. docs/reference/usage.md#rebuild
 */
export const layer = Singleton.make(
  "UsageRebuild",
  Effect.flatMap(UsageReport, (usage) =>
    usage.rebuildLeft.pipe(
      Effect.tap((steps) =>
        steps === 0 ? Effect.void : Effect.logInfo(`Usage was made anew in ${steps} steps`)
      ),
      Effect.catchCause((cause) => Effect.logWarning("The rebuild of usage failed", cause)),
      Effect.repeat(Schedule.spaced(Duration.seconds(usageRebuildSeconds))),
      Effect.asVoid
    )
  )
)
