import { Config, Duration, Effect } from "effect"
import { every, fault, read } from "./Setting.ts"

const delayMax = Duration.minutes(10)
const graceMax = Duration.hours(1)

/** docs/operating.md#stopping */
export const shutdownSettings = Effect.suspend(() => {
  const duration = (name: string, preset: Duration.Duration, max: Duration.Duration) => {
    const remedy = `set a duration up to ${Duration.format(max)}, such as ${Duration.format(preset)}, or 0 seconds`
    return read(name, Config.Duration(name).pipe(Config.withDefault(preset)), remedy).pipe(
      Effect.filterOrFail(
        (it) => !Duration.isNegative(it) && Duration.isLessThanOrEqualTo(it, max),
        (it) => fault(name, `${Duration.format(it)} is out of bounds`, remedy)
      )
    )
  }
  return every({
    shutdownDelay: duration("SHUTDOWN_DELAY", Duration.seconds(5), delayMax),
    shutdownGrace: duration("SHUTDOWN_GRACE", Duration.minutes(5), graceMax)
  })
})
