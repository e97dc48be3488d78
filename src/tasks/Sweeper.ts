import { Duration, Effect, Schedule } from "effect"
import { Singleton } from "effect/cluster"
import { heartbeatSeconds } from "../domain/Limits.ts"
import { Sweeps } from "./Rescuer.ts"

/** Frees what dead processes owned and wakes what nobody owns (architecture, rule 3). */
export const layer = Singleton.make(
  "Sweeper",
  Effect.flatMap(Sweeps, (sweeps) =>
    Effect.andThen(sweeps.orphans, sweeps.forgotten).pipe(
      Effect.catchCause((cause) => Effect.logWarning("A sweep failed", cause)),
      Effect.repeat(Schedule.spaced(Duration.seconds(heartbeatSeconds))),
      Effect.asVoid
    )
  )
)
