import { Context, Deferred, Effect, Latch, Layer } from "effect"

/** Work that a drain waits for, because another process cannot take it over. */
export type HeldWork = "submit" | "delivery"

/**
 * Whether this process is stopping. Loops that claim work check `isDraining`, task steps are interrupted once the drain
 * has `begun`, and work that must not be interrupted runs in `hold`. docs/operating.md#stopping
 */
export class Drain extends Context.Service<
  Drain,
  {
    /** True once the stop signal has arrived: claim nothing more, and release waiting work. */
    readonly isDraining: () => boolean
    /** Succeeds when the drain begins. */
    readonly begun: Effect.Effect<void>
    readonly begin: Effect.Effect<void>
    /** Succeeds when a second signal asks the drain to finish soon. */
    readonly hurried: Effect.Effect<void>
    readonly hurry: Effect.Effect<void>
    /** Allows the remaining writes until this time, in milliseconds of `performance.now()`. */
    readonly graceUntil: (millis: number) => Effect.Effect<void>
    /**
     * The end of the grace period, on the same clock. It lies in the past if there is no grace period, and after
     * `hurry`.
     */
    readonly graceEnd: () => number
    /** Runs an effect. The drain waits until it has ended. */
    readonly hold: (
      kind: HeldWork
    ) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** The same for work that is not a single effect: adds `by` to the count of held work of this kind. */
    readonly count: (kind: HeldWork, by: number) => void
    /** How much work of this kind is held now. */
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

  /** Begins the drain when the scope closes, unless it has begun before. */
  static readonly layerAtEnd = Layer.effectDiscard(
    Effect.flatMap(Drain, ({ begin }) => Effect.addFinalizer(() => begin))
  )
}
