import { Config, Duration, Effect } from "effect"
import { every, fault, read } from "./Setting.ts"

/** docs/operating.md#stopping */
export const shutdownSettings = Effect.suspend(() => {
  const duration = (
    name: string,
    preset: `${number} ${Duration.Unit}`,
    max: `${number} ${Duration.Unit}`
  ) => {
    const remedy = `set a duration up to ${max}, such as ${preset}, or 0 seconds`
    return read(
      name,
      Config.Duration(name).pipe(Config.withDefault(Duration.fromInputUnsafe(preset))),
      remedy
    ).pipe(
      Effect.filterOrFail(
        (it) =>
          !Duration.isNegative(it) &&
          Duration.isLessThanOrEqualTo(it, Duration.fromInputUnsafe(max)),
        (it) => fault(name, `${Duration.format(it)} is out of bounds`, remedy)
      )
    )
  }
  return every({
    shutdownDelay: duration("SHUTDOWN_DELAY", "5 seconds", "10 minutes"),
    shutdownGrace: duration("SHUTDOWN_GRACE", "5 minutes", "1 hour")
  })
})
