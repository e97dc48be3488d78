import { Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import { attemptLostSeconds, ownerDeadSeconds } from "../domain/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Process } from "../process/Process.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { DeliveryStore } from "./DeliveryStore.ts"

/**
 * Most scans read only what fell due since the scan before, so that the backlog of a flooded endpoint
 * costs nothing. At this interval one reads everything, and finds deliveries whose message was lost.
 */
const fullScanMillis = 5000

/**
 * A full scan also notifies endpoints whose next delivery falls due by 1.5 s after the next full scan,
 * so that their senders are open by then. ADR 0106, ADR 0114.
 */
const openAhead = Duration.millis(fullScanMillis + 1500)

/**
 * The loop sleeps to the next due delivery. Retries are due 15 s ahead at the least, and new deliveries
 * are notified by their own transaction, so a scan every 5 s misses none.
 */
const scanIntervalMax = Duration.seconds(5)

/** Rows that fall due within this time are served by one scan. */
const scanIntervalMin = Duration.millis(10)

/** Notifies the senders of endpoints whose deliveries fall due. */
export class DeliveryScheduler extends Context.Service<
  DeliveryScheduler,
  {
    /** Notifies every endpoint with a due delivery, or soon one; returns when the next falls due. */
    readonly notifyDue: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    /** Queues again the attempts that dead processes left claimed. */
    readonly requeueLost: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryScheduler") {
  static readonly layer = Layer.effect(
    DeliveryScheduler,
    Effect.gen(function* () {
      const deliveries = yield* DeliveryStore
      const process = yield* Process
      const notifier = yield* WorkNotifier
      let lastScan = Option.none<DateTime.Utc>()
      let lastFullScan = Option.none<DateTime.Utc>()
      const isFull = (now: DateTime.Utc) =>
        Option.match(lastFullScan, {
          onNone: () => true,
          onSome: (at) => Math.abs(millisBetween(at, now)) >= fullScanMillis
        })
      return DeliveryScheduler.of({
        notifyDue: Effect.gen(function* () {
          const now = yield* DateTime.now
          const full = isFull(now)
          const due = full
            ? yield* deliveries.due(Option.none(), now, DateTime.addDuration(now, openAhead))
            : yield* deliveries.due(lastScan, now, now)
          lastScan = Option.some(now)
          if (full) lastFullScan = lastScan
          yield* notifier.notifyEndpoints(due.endpoints)
          return due.next
        }),
        requeueLost: Effect.gen(function* () {
          const since = yield* process.aliveSince
          const now = yield* DateTime.now
          yield* deliveries.skipDisabled(DateTime.subtract(now, { minutes: 1 }), now)
          const before = DateTime.subtract(since, {
            seconds: attemptLostSeconds - ownerDeadSeconds
          })
          const lost = yield* deliveries.requeueLost(since, before, now)
          if (lost > 0)
            yield* Effect.logWarning(`${lost} webhook attempts were lost and are sent again`)
        })
      })
    })
  )

  /** The loop: sleeps to the next due delivery and notifies its endpoint's sender. */
  static readonly layerLoop = Layer.effectDiscard(
    Effect.forkScoped(
      Effect.gen(function* () {
        const { notifyDue } = yield* DeliveryScheduler
        const scan = notifyDue.pipe(
          Effect.catchCause((cause) =>
            Effect.as(
              Effect.logWarning("Due deliveries were not read", cause),
              Option.none<DateTime.Utc>()
            )
          )
        )
        return yield* Effect.forever(
          Effect.gen(function* () {
            const next = yield* scan
            const now = yield* DateTime.now
            const wait = Option.match(next, {
              onNone: () => scanIntervalMax,
              onSome: (due) => Duration.min(scanIntervalMax, DateTime.distance(now, due))
            })
            yield* Effect.sleep(Duration.max(scanIntervalMin, wait))
          })
        )
      })
    )
  )
}

const millisBetween = (a: DateTime.Utc, b: DateTime.Utc): number =>
  DateTime.toEpochMillis(b) - DateTime.toEpochMillis(a)
