import { Context, Deferred, Effect, Latch, Layer } from "effect"

/** Work that a drain lets finish, because another process cannot take it over. */
export type HeldWork = "submit" | "delivery"

/**
 * Whether this process is stopping. Loops that claim work ask `isDraining`; task steps are interrupted when
 * it has `begun`; work that must not be interrupted runs in `hold`. docs/operating.md#stopping
 */
export class Drain extends Context.Service<
  Drain,
  {
    /** True from the signal on: claim nothing more, and release waiting work. */
    readonly isDraining: () => boolean
    /** Succeeds when the drain begins. */
    readonly begun: Effect.Effect<void>
    readonly begin: Effect.Effect<void>
    /** Succeeds when a second signal asks the drain to end soon. */
    readonly hurried: Effect.Effect<void>
    readonly hurry: Effect.Effect<void>
    /** Remaining writes may take until then, in milliseconds of `performance.now()`. */
    readonly graceUntil: (millis: number) => Effect.Effect<void>
    /** The same time; in the past without a grace period and after `hurry`. */
    readonly graceEnd: () => number
    /** Runs an effect; the drain waits for its end. */
    readonly hold: (
      kind: HeldWork
    ) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** The same for work without a single effect: adds this many of a kind. */
    readonly count: (kind: HeldWork, by: number) => void
    /** How many of a kind are held now. */
    readonly held: (kind: HeldWork) => number
    /** Succeeds once nothing is held. */
    readonly idle: Effect.Effect<void>
  }
>()("gateway/process/Drain") {
  static readonly layer = Layer.effect(
    Drain,
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const hurried = yield* Deferred.make<void>()
      const idle = yield* Latch.make(true)
      const counts: Record<HeldWork, number> = { submit: 0, delivery: 0 }
      let graceEnd = -Infinity
      const isDraining = () => Deferred.isDoneUnsafe(begun)
      const count = (kind: HeldWork, by: number) => {
        counts[kind] += by
        if (counts.submit === 0 && counts.delivery === 0) idle.openUnsafe()
        else idle.closeUnsafe()
      }
      return Drain.of({
        isDraining,
        begun: Deferred.await(begun),
        begin: Effect.asVoid(Deferred.succeed(begun, undefined)),
        hurried: Deferred.await(hurried),
        hurry: Effect.suspend(() => {
          graceEnd = -Infinity
          return Effect.asVoid(Deferred.succeed(hurried, undefined))
        }),
        graceUntil: (millis) =>
          Effect.sync(() => {
            graceEnd = millis
          }),
        graceEnd: () => graceEnd,
        hold: (kind) => (effect) =>
          Effect.acquireUseRelease(
            Effect.sync(() => count(kind, 1)),
            () => effect,
            () => Effect.sync(() => count(kind, -1))
          ),
        count,
        held: (kind) => counts[kind],
        idle: idle.await
      })
    })
  )

  /** Begins the drain no later than when the scope closes. */
  static readonly layerAtEnd = Layer.effectDiscard(
    Effect.flatMap(Drain, ({ begin }) => Effect.addFinalizer(() => begin))
  )
}
