import { Cause, Duration, Effect, Exit, Layer, Metric } from "effect"
import { AppConfig } from "../config/Config.ts"
import { Listener, refuseOpen } from "../http/server/listener/Listener.ts"
import { Drain } from "../process/Drain.ts"
import { ProcessGroup } from "../process/ProcessGroup.ts"

/**
 * Drains the process after a stop signal, before anything else is released. It must be the last layer to be built.
 * docs/operating.md#stopping, ADR 0155.
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { drained } = yield* makeDrain
    yield* Effect.addFinalizer((exit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? drained : Effect.void
    )
  })
)

/** How long actors, records and the store may take after the grace period or a second signal. */
const closingMillisMax = 5000

/**
 * Ends the process even if work cannot be interrupted or waits for a store that does not respond. The work's next owner
 * finds it in the store.
 */
const endWithin = (millis: number) =>
  setTimeout(() => globalThis.process.exit(0), millis + closingMillisMax).unref()

const cutTotal = Metric.counter("gateway_shutdown_cut_total", {
  description: "Work interrupted by the end of the process, by kind.",
  incremental: true
})

const makeDrain = Effect.gen(function* () {
  const { shutdownDelay, shutdownGrace } = yield* AppConfig
  const drain = yield* Drain
  const group = yield* ProcessGroup
  const { drain: listener } = yield* Listener
  const atMost = (wait: Effect.Effect<unknown>, duration: Duration.Duration) =>
    Effect.raceAllFirst([wait, Effect.sleep(duration), drain.hurried])

  const countCut = Effect.gen(function* () {
    const cut = {
      request: listener.open().length,
      submit: drain.held("submit"),
      delivery: drain.held("delivery")
    }
    const kinds = Object.entries(cut).filter(([, count]) => count > 0)
    if (kinds.length === 0) return
    for (const [kind, count] of kinds) {
      yield* Metric.update(Metric.withAttributes(cutTotal, { kind }), count)
    }
    yield* Effect.logWarning("The end of the process interrupts work").pipe(
      Effect.annotateLogs(cut)
    )
  })

  const drained = Effect.gen(function* () {
    // The first signal started the drain; another one shortens it
    group.onHurry(() => {
      Effect.runFork(drain.hurry)
      endWithin(0)
    })
    yield* drain.begin
    const grace = Duration.sum(shutdownDelay, shutdownGrace)
    yield* drain.graceUntil(performance.now() + Duration.toMillis(grace))
    listener.begin()
    yield* Effect.logInfo("Draining the process")
    yield* atMost(Effect.never, shutdownDelay)
    yield* listener.stopListening
    yield* atMost(Effect.andThen(listener.idle, drain.idle), shutdownGrace)
    yield* countCut
    endWithin(Math.max(0, drain.graceEnd() - performance.now()))
    refuseOpen(listener.open())
  })
  return { drained }
})
