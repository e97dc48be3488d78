import { Clock, Context, DateTime, Duration, Effect, Layer, Option } from "effect"
import type { EndpointId } from "../domain/Ids.ts"
import { attemptLostSeconds, heartbeatSeconds, ownerDeadSeconds } from "../domain/limits/Limits.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { DueLoop } from "../process/DueLoop.ts"
import * as Duty from "../process/heartbeat/Duty.ts"
import { Process } from "../process/heartbeat/Process.ts"
import { Hints } from "../process/signals/Hints.ts"
import { WorkNotifier } from "../process/signals/WorkNotifier.ts"
import { DeliveryStore } from "./DeliveryStore.ts"

/**
 * Most scans read only deliveries that fell due since the previous scan, so the backlog of a flooded endpoint
 * costs nothing. At this interval a scan reads everything, and finds deliveries whose message was lost.
 */
const fullScanMillis = 5000

/**
 * A full scan also notifies endpoints whose next delivery falls due by 1.5 s after the next full scan,
 * so that their senders are open in time. ADR 0003, 0114.
 */
const openAhead = Duration.millis(fullScanMillis + 1500)

/**
 * The loop sleeps to the next due delivery. Retries are due at least 15 s ahead, and the transaction
 * of a new delivery notifies its endpoint, so a scan every 5 s misses none.
 */
const scanIntervalMaxMillis = 5000

/** Rows that fall due within this time are served by one scan. */
const scanIntervalMinMillis = 10

/** Up to this many due endpoints of a scan (one claim), the process whose turn it is serves them all. */
const ownEndpointsMax = 100

/** Lost attempts requeued by one statement. */
const lostMax = 5000

/** How long a process scans after its turn. The next turn, of this process or another, comes sooner. */
const turnMillis = fullScanMillis + 2 * heartbeatSeconds * 1000

/** Notifies the senders of endpoints whose deliveries fall due. */
export class DeliveryScheduler extends Context.Service<
  DeliveryScheduler,
  {
    /** Notifies every endpoint whose delivery is due now or soon; returns when the next falls due. */
    readonly notifyDue: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    /** Requeues attempts that dead processes left claimed. */
    readonly requeueLost: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/webhooks/DeliveryScheduler") {
  static readonly layer = Layer.effect(
    DeliveryScheduler,
    Effect.gen(function* () {
      const deliveries = yield* DeliveryStore
      const process = yield* Process
      const notifier = yield* WorkNotifier
      const hints = yield* Hints
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
          // A backlog is for all processes; a few retries are not worth a claim by each
          if (due.endpoints.length > ownEndpointsMax) {
            for (const id of due.endpoints) hints.publishUnsafe("endpoint", id)
          }
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
          const endpoints = new Set<EndpointId>()
          const requeue = Effect.gen(function* () {
            const lost = yield* deliveries.requeueLost(since, before, now, lostMax)
            if (lost.rescued === 0) return 0
            yield* Effect.logWarning(
              `${lost.rescued} webhook attempts were lost and will be sent again`
            )
            for (const id of lost.endpoints) endpoints.add(id)
            return lost.rescued
          })
          yield* Effect.repeat(requeue, { while: (rescued) => rescued === lostMax })
          // All processes share them
          for (const id of endpoints) hints.publishUnsafe("endpoint", id)
          yield* notifier.notifyEndpoints([...endpoints])
        })
      })
    })
  )

  /**
   * The loop of the process whose turn it is: sleeps to the next due delivery and notifies its endpoint's
   * actor.
   */
  static readonly layerLoop = Layer.unwrap(
    Effect.sync(() => {
      const loop = new DueLoop()
      let isTurn = false
      let scansUntil = Number.NEGATIVE_INFINITY
      const scan = Effect.gen(function* () {
        if (!isTurn) return Number.POSITIVE_INFINITY
        const { notifyDue } = yield* DeliveryScheduler
        const next = yield* notifyDue
        const now = yield* Clock.currentTimeMillis
        isTurn = now < scansUntil
        const dueAt = Option.match(next, {
          onNone: () => Number.POSITIVE_INFINITY,
          onSome: DateTime.toEpochMillis
        })
        return Math.min(now + scanIntervalMaxMillis, Math.max(now + scanIntervalMinMillis, dueAt))
      })
      const begin = Effect.map(Clock.currentTimeMillis, (now) => {
        scansUntil = now + turnMillis
        if (isTurn) return
        isTurn = true
        loop.wake()
      })
      const scans = loop.run({
        scan,
        failed: "Due deliveries were not read",
        retryMillis: scanIntervalMaxMillis
      })
      return Layer.mergeAll(
        Layer.effectDiscard(Effect.forkScoped(scans)),
        Duty.layer({ name: "due deliveries", seconds: fullScanMillis / 1000 }, begin)
      )
    })
  )
}

const millisBetween = (a: DateTime.Utc, b: DateTime.Utc): number =>
  DateTime.toEpochMillis(b) - DateTime.toEpochMillis(a)
