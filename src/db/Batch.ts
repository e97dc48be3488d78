import { Effect, Exit } from "effect"

export interface BatchOptions<In, Out, E> {
  /** Serves many at once; answers in the order of the items. */
  readonly run: (items: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, E>
  /** Items of one run at most. */
  readonly itemsMax: number
  /** Runs under way at once. */
  readonly runsMax: number
  /** Runs begin this far apart, so that more goes together; one that comes after a while waits for nobody. */
  readonly apartMillis?: number
}

interface Waiting<In, Out, E> {
  readonly item: In
  readonly resume: (effect: Effect.Effect<Out, E>) => void
}

/**
 * Turns calls for one item into runs for many: what comes while all runs are busy goes together
 * into the next. One call alone waits for nobody, so nothing is slower for it. ADR 0050.
 *
 * `GroupCommit` gathers for a transaction of the store and is of its layer: at its end it interrupts,
 * and a call that died is tried alone. What is gathered here was sent already, and has to be written
 * down also while the services end; its runs are statements that take or leave each row by itself.
 */
export const makeBatch = Effect.fnUntraced(function* <In, Out, E>(
  options: BatchOptions<In, Out, E>
): Effect.fn.Return<(item: In) => Effect.Effect<Out, E>> {
  // In no scope: an actor that ends after its services still writes down what it sent.
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const { apartMillis = 0 } = options
  let waiting: Array<Waiting<In, Out, E>> = []
  let runs = 0

  let begunAt = -Infinity
  /** Real time, whatever the clock of a test says: it spares work and decides nothing. */
  const apart = Effect.callback<void>((resume) => {
    const wait = begunAt + apartMillis - performance.now()
    if (wait > 0) setTimeout(() => resume(Effect.void), wait)
    else resume(Effect.void)
  })

  const runOnce = Effect.suspend(() => {
    begunAt = performance.now()
    const batch = waiting.slice(0, options.itemsMax)
    waiting = waiting.slice(options.itemsMax)
    return Effect.suspend(() => options.run(batch.map((one) => one.item))).pipe(
      Effect.exit,
      Effect.map((exit) => {
        batch.forEach((one, index) => one.resume(answerOf(exit, index)))
      })
    )
  })

  const work = Effect.gen(function* () {
    // Calls of the same turn join.
    yield* Effect.yieldNow
    while (waiting.length > 0) {
      if (apartMillis > 0) yield* apart
      yield* runOnce
    }
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        runs -= 1
      })
    )
  )

  return (item) =>
    Effect.callback<Out, E>((resume) => {
      waiting.push({ item, resume })
      if (runs >= options.runsMax) return
      runs += 1
      fork(work)
    })
})

const answerOf = <Out, E>(exit: Exit.Exit<ReadonlyArray<Out>, E>, index: number) => {
  if (Exit.isFailure(exit)) return Effect.failCause(exit.cause)
  const answer = exit.value[index]
  return answer === undefined
    ? Effect.die(new Error("A batch answered too little"))
    : Effect.succeed(answer)
}
