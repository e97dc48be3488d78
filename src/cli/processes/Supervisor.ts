import { Duration, Effect, Layer, Queue } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { restartMillis } from "../../domain/Retries.ts"
import { metricText, processMetrics } from "../../http/server/service/ProcessMetrics.ts"
import * as Logging from "../Logging.ts"
import { Children } from "./Children.ts"
import type { Child, Ended } from "./Children.ts"

/** A process that has run this long did not fail while starting. */
const steadyMillis = 60_000
/** How long a replacement may take to start; it may wait two minutes for the store. */
const startMillisMax = 180_000
/** How often a process is asked whether it is alive, and how many answers in a row may be missing. */
const watchMillis = 10_000
const missedMax = 6
/** Added to the two settings, for the work of a process after its grace period. */
const closingMillisMax = 10_000

/**
 * Runs `PROCESSES` equal processes behind one port: starts them, restarts those that die, replaces them one at a time
 * at SIGUSR2, passes SIGHUP to one of them, and ends with the last one after SIGTERM or SIGINT.
 * docs/reference/processes.md#all-cores-of-a-machine, ADR 0295
 */
const supervise = Effect.gen(function* () {
  const { processes } = yield* AppConfig
  const restarts = { death: 0, request: 0 }
  const children = new Children(processes, () => groupMetrics(children, restarts))
  yield* Effect.addFinalizer(() => drain(children))
  yield* passReload(children)
  const first = yield* startFirst(children)
  const others = Array.from({ length: processes - 1 }, () => children.start("next"))
  const slots = [first, ...others].map((child): Slot => ({ child }))
  yield* Effect.forEach(slots, (slot) => Effect.forkScoped(keep(children, slot, restarts)))
  yield* Effect.forEach(slots, (slot) => Effect.forkScoped(watch(children, slot)))
  yield* Effect.promise(() => Promise.all(others.map(({ started }) => started)))
  yield* Effect.logInfo(`${children.listening.length} processes serve the port`)
  yield* replaceAtSignal(children, slots, restarts)
  return yield* Effect.never
}).pipe(Effect.scoped)

export const supervisor = supervise.pipe(
  Effect.provide(Logging.layer.pipe(Layer.provideMerge(AppConfig.layer)))
)

/** A slot of the group with its current process. */
export interface Slot {
  child: Child
}

interface Restarts {
  death: number
  request: number
}

/**
 * Starts the first process alone, so that a wrong setting is reported once and only one process migrates. If it fails,
 * its exit status becomes that of the command.
 */
const startFirst = Effect.fnUntraced(function* (children: Children) {
  const child = children.start("first")
  yield* Effect.promise(() => child.started)
  if (child.state !== "ended") return child
  const { status } = yield* Effect.promise(() => child.ended)
  return yield* Effect.sync(() => globalThis.process.exit(typeof status === "number" ? status : 1))
})

/** Starts another process whenever this slot's process has ended without being replaced. */
const keep = Effect.fnUntraced(function* (children: Children, slot: Slot, restarts: Restarts) {
  let failures = 0
  while (true) {
    const { child } = slot
    const ended = yield* Effect.promise(() => child.ended)
    if (slot.child !== child) continue
    failures = ended.ranMillis < steadyMillis ? failures + 1 : 1
    const pause = ended.status === 0 ? 0 : restartMillis(failures)
    yield* logEnd(child, ended, pause)
    yield* Effect.sleep(pause)
    if (slot.child !== child) continue
    restarts.death += 1
    slot.child = children.start("next")
  }
})

/**
 * Kills a process that hangs, because the connections that it gets would hang too. Another one is started in its place.
 * A process that has not answered yet is still starting.
 */
export const watch = Effect.fnUntraced(function* (children: Pick<Children, "isAlive">, slot: Slot) {
  let known: Child | undefined
  let missed = 0
  while (true) {
    yield* Effect.sleep(watchMillis)
    const { child } = slot
    if (yield* Effect.promise(() => children.isAlive(child))) {
      known = child
      missed = 0
    } else if (known === child && child.state !== "ended") {
      missed += 1
      if (missed < missedMax) continue
      yield* Effect.logError(`The process ${child.pid} has not answered for a minute; killing it`)
      child.process.kill("SIGKILL")
      known = undefined
    }
  }
})

const logEnd = ({ pid }: Child, { status }: Ended, pause: number) =>
  status === 0
    ? Effect.logWarning(`The process ${pid} was asked to stop; starting another one`)
    : Effect.logError(
        `The process ${pid} died (${typeof status === "number" ? `status ${status}` : status}); starting another one in ${Duration.format(Duration.millis(pause))}`
      )

/** Passes SIGHUP to one process, which reloads the catalog and adopts it for all. */
const passReload = (children: Children) =>
  onSignal("SIGHUP", () => {
    const [child] = children.listening
    if (child !== undefined) children.reload(child)
  })

const onSignal = (signal: NodeJS.Signals, handle: () => void) =>
  Effect.acquireRelease(
    Effect.sync(() => globalThis.process.on(signal, handle)),
    () => Effect.sync(() => globalThis.process.off(signal, handle))
  )

/** Replaces the processes at SIGUSR2. Signals during a replacement cause one more. */
const replaceAtSignal = Effect.fnUntraced(function* (
  children: Children,
  slots: ReadonlyArray<Slot>,
  restarts: Restarts
) {
  const signals = yield* Queue.sliding<void>(1)
  yield* onSignal("SIGUSR2", () => Queue.offerUnsafe(signals, undefined))
  const replaceAll = Effect.gen(function* () {
    yield* Effect.logInfo("SIGUSR2: replacing the processes one after another")
    for (const slot of slots) {
      if (!(yield* replace(children, slot))) {
        return yield* Effect.logError(
          "SIGUSR2: a new process did not start; the remaining processes are not replaced"
        )
      }
      restarts.request += 1
    }
    return yield* Effect.logInfo("SIGUSR2: every process was replaced")
  })
  yield* Queue.take(signals).pipe(Effect.andThen(replaceAll), Effect.forever, Effect.forkScoped)
})

/**
 * Replaces a process. The new one listens on the sockets of the old one before the old one closes them, so no
 * connection is lost. Returns whether the new process started; if not, the old one continues.
 */
const replace = Effect.fnUntraced(function* (children: Children, slot: Slot) {
  const old = slot.child
  const sockets = yield* Effect.promise(() => children.socketsOf(old))
  const child = children.start(sockets.length === 0 ? "next" : "replacement", sockets)
  yield* Effect.timeoutOption(
    Effect.promise(() => child.started),
    startMillisMax
  )
  for (const socket of sockets) if ("close" in socket) socket.close()
  if (child.state !== "listening") {
    child.process.kill("SIGKILL")
    return false
  }
  // This may be a different process, if the old one died in the meantime
  const left = slot.child
  slot.child = child
  children.leave(left)
  yield* endedWithinGrace(left.ended)
  left.process.kill("SIGKILL")
  return true
})

/** Stops all processes, waits for them, and passes a second signal on. */
const drain = Effect.fnUntraced(function* (children: Children) {
  children.isStopping = true
  const ended = Promise.all(children.all.map((child) => child.ended))
  children.tell({ _tag: "Stop" })
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    globalThis.process.on(signal, () => children.tell({ _tag: "Hurry" }))
  }
  yield* endedWithinGrace(ended)
  children.kill()
})

/** Waits for processes that were told to stop, but no longer than they are allowed to take. */
const endedWithinGrace = Effect.fnUntraced(function* (ended: Promise<unknown>) {
  const { shutdownDelay, shutdownGrace } = yield* AppConfig
  const grace = Duration.toMillis(Duration.sum(shutdownDelay, shutdownGrace))
  yield* Effect.timeoutOption(
    Effect.promise(() => ended),
    grace + closingMillisMax
  )
})

const groupMetrics = (children: Children, restarts: Restarts): string =>
  [
    ...processMetrics(),
    {
      name: "gateway_processes",
      type: "gauge",
      help: "Processes of this command that serve requests.",
      samples: [[{}, children.listening.length]]
    } as const,
    {
      name: "gateway_process_restarts_total",
      type: "counter",
      help: "Processes of this command that were started again, by reason: death or request.",
      samples: Object.entries(restarts).map(([reason, count]) => [{ reason }, count] as const)
    } as const
  ]
    .map(metricText)
    .join("")
