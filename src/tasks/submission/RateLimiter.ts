import { Context, DateTime, Deferred, Duration, Effect, Exit, Layer } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { Rate } from "../../vendors/VendorClient.ts"
import { RateLeaseStore } from "./RateLeaseStore.ts"
import { startServing } from "./Served.ts"
import type { Served } from "./Served.ts"

/**
 * Keeps calls to a vendor within its limits, over all processes: whoever waits gets a turn in the
 * order in which they came, one process leasing turns for all its waiters at once. ADR 0082.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Waits for a turn. Who is interrupted (cancel, deadline) takes none. */
    readonly take: (rate: Rate) => Effect.Effect<void>
  }
>()("gateway/tasks/submission/RateLimiter") {
  static readonly layer = Layer.effect(
    RateLimiter,
    Effect.gen(function* () {
      const turns = yield* RateLeaseStore
      const scope = yield* Effect.scope
      const lanes = new Map<string, Lane>()

      const laneOf = (rate: Rate): Lane => {
        const known = lanes.get(rate.key)
        if (known !== undefined) return known
        const lane: Lane = { rate, waiting: new Set(), isServed: false }
        lanes.set(rate.key, lane)
        return lane
      }

      /** Serves all who wait, then ends: an idle lane costs nothing. */
      const serve = Effect.fnUntraced(function* (lane: Lane) {
        const { calls, key, perMillis } = lane.rate
        const spacing = Duration.millis(perMillis / calls)
        while (lane.waiting.size > 0) {
          const now = yield* DateTime.now
          const count = Math.min(lane.waiting.size, batchMax(lane.rate))
          const first = yield* retryStore(turns.lease({ key, count, spacing, now }))
          for (let index = 0; index < count; index += 1) {
            const at = DateTime.toEpochMillis(first) + index * Duration.toMillis(spacing)
            const wait = at - DateTime.toEpochMillis(yield* DateTime.now)
            if (wait > 0) yield* Effect.sleep(wait)
            yield* giveTurn(lane)
          }
        }
        // In the same breath as the look above: who comes next starts the lane again
        lane.isServed = false
      })

      return RateLimiter.of({
        take: (rate) =>
          Effect.suspend(() => {
            const lane = laneOf(rate)
            const turn: Turn = Deferred.makeUnsafe()
            lane.waiting.add(turn)
            const left = Effect.sync(() => lane.waiting.delete(turn))
            return startServing(lane, serve, scope).pipe(
              Effect.andThen(Deferred.await(turn)),
              Effect.onInterrupt(() => left)
            )
          })
      })
    })
  )
}

type Turn = Deferred.Deferred<void>

interface Lane extends Served {
  readonly rate: Rate
  /** In the order in which they came. */
  readonly waiting: Set<Turn>
}

/** At most a second's worth of turns is leased at once, so that other processes wait no longer. */
const batchMax = ({ calls, perMillis }: Rate): number =>
  Math.max(1, Math.floor((calls * 1000) / perMillis))

/** The first who waits goes on; a turn that nobody wants any more is lost. */
const giveTurn = (lane: Lane): Effect.Effect<void> =>
  Effect.suspend(() => {
    const [turn] = lane.waiting
    if (turn === undefined) return Effect.void
    lane.waiting.delete(turn)
    return Deferred.done(turn, Exit.void)
  })
