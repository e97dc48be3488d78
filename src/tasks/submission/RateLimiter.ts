import { Context, DateTime, Deferred, Duration, Effect, Exit, Layer } from "effect"
import { retryStore } from "../../db/StoreFailures.ts"
import type { Rate } from "../../vendors/VendorClient.ts"
import { RateLeaseStore } from "./RateLeaseStore.ts"
import { startServing } from "./Served.ts"
import type { Served } from "./Served.ts"

/**
 * Limits the rate of calls to a vendor, over all processes. A process leases permits for all its waiters
 * at once and grants them in the order in which the waiters came. ADR 0082.
 */
export class RateLimiter extends Context.Service<
  RateLimiter,
  {
    /** Waits for a permit. An interrupted waiter (cancel, deadline) takes none. */
    readonly acquire: (rate: Rate) => Effect.Effect<void>
  }
>()("gateway/tasks/submission/RateLimiter") {
  static readonly layer = Layer.effect(
    RateLimiter,
    Effect.gen(function* () {
      const leases = yield* RateLeaseStore
      const scope = yield* Effect.scope
      const queues = new Map<string, PermitQueue>()

      const queueOf = (rate: Rate): PermitQueue => {
        const known = queues.get(rate.key)
        if (known !== undefined) return known
        const queue: PermitQueue = { rate, waiting: new Set(), isServed: false }
        queues.set(rate.key, queue)
        return queue
      }

      /** Runs while there are waiters, then ends: an idle queue costs nothing. */
      const serve = Effect.fnUntraced(function* (queue: PermitQueue) {
        const { calls, key, perMillis } = queue.rate
        const spacing = Duration.millis(perMillis / calls)
        while (queue.waiting.size > 0) {
          const now = yield* DateTime.now
          const count = Math.min(queue.waiting.size, permitsPerLeaseMax(queue.rate))
          const first = yield* retryStore(leases.lease({ key, count, spacing, now }))
          for (let index = 0; index < count; index += 1) {
            const at = DateTime.toEpochMillis(first) + index * Duration.toMillis(spacing)
            const wait = at - DateTime.toEpochMillis(yield* DateTime.now)
            if (wait > 0) yield* Effect.sleep(wait)
            yield* grantPermit(queue)
          }
        }
        // In the same synchronous step as the check above, so that the next waiter starts a new fiber
        queue.isServed = false
      })

      return RateLimiter.of({
        acquire: (rate) =>
          Effect.suspend(() => {
            const queue = queueOf(rate)
            const permit: Permit = Deferred.makeUnsafe()
            queue.waiting.add(permit)
            const remove = Effect.sync(() => queue.waiting.delete(permit))
            return startServing(queue, serve, scope).pipe(
              Effect.andThen(Deferred.await(permit)),
              Effect.onInterrupt(() => remove)
            )
          })
      })
    })
  )
}

type Permit = Deferred.Deferred<void>

interface PermitQueue extends Served {
  readonly rate: Rate
  /** In the order in which they came. */
  readonly waiting: Set<Permit>
}

/** One lease takes at most the permits of a second, so that other processes wait no longer than that. */
const permitsPerLeaseMax = ({ calls, perMillis }: Rate): number =>
  Math.max(1, Math.floor((calls * 1000) / perMillis))

/** Grants the permit to the first waiter; without a waiter it is lost. */
const grantPermit = (queue: PermitQueue): Effect.Effect<void> =>
  Effect.suspend(() => {
    const [permit] = queue.waiting
    if (permit === undefined) return Effect.void
    queue.waiting.delete(permit)
    return Deferred.done(permit, Exit.void)
  })
