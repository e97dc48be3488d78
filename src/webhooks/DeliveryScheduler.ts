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
 * Most scans read only deliveries that became due after the previous scan, so the backlog of a flooded endpoint costs
 * nothing. At this interval a scan reads everything and finds deliveries whose message was lost.
 */
const fullScanMillis = 5000

/**
 * A full scan also notifies endpoints whose next delivery is due within 1.5 s after the next full scan, so that their
 * actors are open in time. ADR 0003, 0114.
 */
const openAhead = Duration.millis(fullScanMillis + 1500)

/**
 * The loop sleeps until the next due delivery. Retries become due at least 15 s ahead, and the transaction of a new
 * delivery notifies its endpoint, so a scan every 5 s misses none.
 */
const scanIntervalMaxMillis = 5000

/** Deliveries that become due within this time share a scan. */
const scanIntervalMinMillis = 10

/** If a scan finds at most this many due endpoints (one claim), this process serves them all itself. */
const ownEndpointsMax = 100

/** The maximum number of lost attempts that one statement requeues. */
const lostMax = 5000

/** How long a process scans after its turn has begun. The next turn, of this or another process, begins earlier. */
const turnMillis = fullScanMillis + 2 * heartbeatSeconds * 1000

/** Notifies the actors of endpoints whose deliveries become due. */
export class DeliveryScheduler extends Context.Service<
  DeliveryScheduler,
  {
    /** Notifies every endpoint with a delivery that is due now or soon; returns when the next one is due. */
    readonly notifyDue: Effect.Effect<Option.Option<DateTime.Utc>, StoreUnavailable>
    /** Requeues attempts that dead processes had claimed. */
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
          // Other processes help with a backlog; a few retries are not worth a claim by each of them
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

  /** The loop of the process whose turn it is: sleeps until the next due delivery and notifies its endpoint's actor. */
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
