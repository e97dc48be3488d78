import { Array, Clock, DateTime, Duration, Effect, Layer, Queue } from "effect"
import { eachToItsEnd } from "../../domain/EachToItsEnd.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { slotRecheckSeconds } from "../../domain/limits/Limits.ts"
import { afterMillis } from "../../domain/RealTime.ts"
import { dueWorkRetryMillis } from "../../domain/Retries.ts"
import { warnOnce } from "../../domain/WarnOnce.ts"
import { Drain } from "../../process/Drain.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { ConcurrencyLimiter } from "../submission/ConcurrencyLimiter.ts"
import { TaskStore } from "../TaskStore.ts"
import type { Owned } from "./OwnedTask.ts"
import { TaskInbox } from "./TaskInbox.ts"
import { TaskRunner } from "./TaskRunner.ts"

/** The maximum number of tasks in one claim, whose statement returns them with their bodies. */
const claimMax = 100

/**
 * While tasks wait, the first heartbeat after this time scans for tasks that other processes left behind, so after 5 s
 * at most.
 */
const rescanMillis = 3000

/**
 * Tasks that become due within this time are claimed together. The time grows with the size of the last claim. It is
 * measured in real time, not by `Clock`, because it only saves work.
 */
const gatherMillis = (claimed: number): number => Math.min(25, 5 + claimed)

/**
 * How long running steps may continue when the process ends. If a submit takes longer, the next owner of its task finds
 * no record of its outcome.
 */
const closeTimeout = Duration.millis(500)

/**
 * Claims due tasks and runs each step in its own fiber. The fiber has the context of this layer, and nothing of the
 * request that created the task. ADR 0149.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const drain = yield* Drain
    const process = yield* Process
    const inbox = yield* TaskInbox
    const runner = yield* TaskRunner
    const slots = yield* ConcurrencyLimiter
    const fork = yield* makeFiberSlots({ closeTimeout })

    let claimed = 0
    const begin = (owned: Owned) => {
      fork(runner.step(owned), () => {
        inbox.count(owned.queue, -1)
        // The queue was at capacity and may have more due tasks
        if (inbox.capacity(owned.queue) === 1) inbox.wake()
      })
    }
    inbox.attach({ begin, stop: (id) => fork(runner.stop(id)) })
    const { claimDue, claimShare } = yield* makeClaims((owned) => {
      claimed += 1
      inbox.count(owned.queue, 1)
      begin(owned)
    })
    yield* whenProcessesLeave(claimShare)

    let scannedAt = Number.NEGATIVE_INFINITY
    const clock = yield* Clock.Clock
    process.onWaiting(() => {
      if (Math.abs(clock.currentTimeMillisUnsafe() - scannedAt) >= rescanMillis) inbox.wake()
    })

    /** Claims due tasks; returns when to scan again. */
    const scan = Effect.gen(function* () {
      claimed = 0
      // Other processes take the due tasks
      if (drain.isDraining()) return Number.POSITIVE_INFINITY
      // The next heartbeat triggers a scan
      if (!process.isAlive()) return Number.POSITIVE_INFINITY
      const areWaiting = yield* slots.serve
      const next = yield* claimDue
      const now = yield* Clock.currentTimeMillis
      scannedAt = now
      return areWaiting ? Math.min(now + slotRecheckSeconds * 1000, next) : next
    })

    yield* Effect.forkScoped(
      inbox.run({
        scan,
        rest: makeRest(() => gatherMillis(claimed)),
        failed: "Reading due tasks failed",
        retryMillis: dueWorkRetryMillis
      })
    )
  })
)

/** Waits so that scans are at least `millis` apart. */
const makeRest = (millis: () => number): Effect.Effect<void> => {
  let restedAt = Number.NEGATIVE_INFINITY
  return Effect.callback((resume) => {
    const left = Math.max(0, restedAt + millis() - performance.now())
    return Effect.sync(
      afterMillis(left, () => {
        restedAt = performance.now()
        resume(Effect.void)
      })
    )
  })
}

/** Runs at start-up, when a process has died, and when a stopping process hands over its tasks. */
const whenProcessesLeave = Effect.fnUntraced(function* <E, R>(
  claimShare: Effect.Effect<void, E, R>
) {
  const hints = yield* Hints
  const death = yield* (yield* Process).deaths
  const signals = yield* Queue.sliding<void>(1)
  const signal = () => Queue.offerUnsafe(signals, undefined)
  signal()
  hints.subscribe("left", signal)
  yield* Effect.forkScoped(Effect.forever(Effect.map(death, signal)))
  yield* Effect.andThen(Queue.take(signals), claimShare).pipe(
    warnOnce("Taking over tasks failed"),
    Effect.forever,
    Effect.forkScoped
  )
})

/** The maximum number of tasks of one previous owner that a process takes over at once. The rescue frees the rest. */
const shareMax = 5000

/**
 * `claimDue` claims due tasks of all queues up to this process's capacity, and returns when the next task is due.
 * `claimShare` claims this process's share of the tasks that other processes have left. ADR 0020.
 */
const makeClaims = Effect.fnUntraced(function* (begin: (owned: Owned) => void) {
  const drain = yield* Drain
  const inbox = yield* TaskInbox
  const store = yield* TaskStore
  const process = yield* Process
  const { id } = process

  const claimFrom = Effect.fnUntraced(function* (queue: string) {
    for (;;) {
      const limit = Math.min(claimMax, inbox.capacity(queue))
      if (limit <= 0) return inbox.setBehind(queue, true)
      // The tasks claimed so far are released and become due again
      if (drain.isDraining()) return
      const now = yield* DateTime.now
      const claimed = yield* store.claim({ queue, limit, owner: id, now })
      for (const owned of claimed) begin(owned)
      if (claimed.length < limit) return inbox.setBehind(queue, false)
    }
  })

  /** The queues that have due tasks and capacity. A full queue is scanned again once it has capacity. */
  const open = Effect.gen(function* () {
    const queues = yield* store.queues(yield* DateTime.now)
    return queues.filter(({ queue }) => inbox.capacity(queue) > 0)
  })
  const next = (queues: Effect.Success<typeof open>): number =>
    Math.min(...queues.map(({ dueAt }) => DateTime.toEpochMillis(dueAt)))

  const claimDue = Effect.gen(function* () {
    const now = yield* DateTime.now
    const queues = yield* open
    const due = queues.filter(({ dueAt }) => DateTime.isLessThanOrEqualTo(dueAt, now))
    if (due.length === 0) return next(queues)
    yield* eachToItsEnd(due, claimsMax, ({ queue }) => claimFrom(queue))
    // More tasks may be due: scan again now
    return DateTime.toEpochMillis(now)
  })

  const claimFromShare = Effect.fnUntraced(function* (
    { queue, tasks }: { readonly queue: string; readonly tasks: ReadonlyArray<TaskId> },
    aliveSince: DateTime.Utc
  ) {
    for (const some of Array.chunksOf(tasks, claimMax)) {
      const limit = Math.min(some.length, inbox.capacity(queue))
      if (limit <= 0 || drain.isDraining()) return
      const now = yield* DateTime.now
      const share = { tasks: some, aliveSince }
      for (const owned of yield* store.claim({ queue, limit, owner: id, now, share })) begin(owned)
    }
  })

  const claimShare = Effect.gen(function* () {
    if (drain.isDraining() || !process.isAlive()) return
    const aliveSince = yield* process.aliveSince
    const queues = yield* store.share(aliveSince, id, shareMax)
    yield* eachToItsEnd(queues, claimsMax, (queue) => claimFromShare(queue, aliveSince))
  })
  return { claimDue, claimShare }
})

/** The maximum number of queues from which tasks are claimed at once. */
const claimsMax = 4
