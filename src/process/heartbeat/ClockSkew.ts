import { Clock, DateTime, Effect, Metric } from "effect"
import { clockSkewSecondsMax } from "../../domain/limits/Limits.ts"
import type { News } from "./ProcessStore.ts"

const clockSkew = Metric.gauge("gateway_clock_skew_seconds", {
  description: "How far the clock of this process is ahead of the clock of the database."
})

/** Compares the clocks at each reading. Logs when they begin to differ and when they agree again. */
export const makeMeasureSkew = () => {
  let isSkewed = false
  return Effect.fnUntraced(function* <E>(read: Effect.Effect<News, E>) {
    const before = yield* Clock.currentTimeMillis
    const news = yield* read
    const now = news.at
    const after = yield* Clock.currentTimeMillis
    // The database's clock was read at some time between the two
    const aheadMillis = (before + after) / 2 - DateTime.toEpochMillis(now)
    const skew = aheadMillis / 1000
    yield* Metric.update(clockSkew, skew)
    const isNowSkewed = Math.abs(skew) - (after - before) / 2000 > clockSkewSecondsMax
    if (isNowSkewed !== isSkewed) {
      isSkewed = isNowSkewed
      const seconds = Math.abs(skew).toFixed(1)
      yield* isNowSkewed
        ? Effect.logError(
            `The clock of this process differs from the database's by ${seconds} s; synchronize it`
          )
        : Effect.logInfo("The clock of this process agrees with the database's again")
    }
    // Smaller differences can come from the round trip and from ordinary clock synchronization
    return { news, aheadMillis: isSkewed ? aheadMillis : 0 }
  })
}
