import { Effect, Exit, FiberSet } from "effect"
import type { Scope } from "effect"
import { withoutServices } from "../domain/BackgroundContext.ts"
import { afterMillis } from "../domain/RealTime.ts"

export interface BatcherOptions<Item, Outcome, E> {
  /** Runs many items at once; returns their outcomes in the order of the items. */
  readonly run: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Outcome>, E>
  /** The most items in one run. */
  readonly itemsMax: number
  /** The most concurrent runs. */
  readonly runsMax: number
  /** The shortest time between the starts of two runs, so that more items share a run. */
  readonly intervalMillis?: number
  /** Limits the interval to this long per item of the previous run, so that small batches wait less. */
  readonly intervalMillisPerItem?: number
  /**
   * Reruns a batch that dies item by item, so that only the broken item fails. Only for a `run` that has no effect when
   * it dies.
   */
  readonly splitBatch?: boolean
}

interface Entry<Item, Outcome, E> {
  readonly item: Item
  /** The position in the order of arrival. */
  readonly n: number
  state: "waiting" | "running" | "done"
  resume: ((outcome: Effect.Effect<Outcome, E>) => void) | undefined
}

interface Listener {
  /** The listener waits for the items up to this one, of which this many are unfinished. */
  readonly upTo: number
  open: number
  readonly resume: () => void
}

/**
 * Combines calls for single items into runs for many. An idle batcher runs an item at once; items that arrive while all
 * runs are busy share the next run. Runs use the context in which the batcher was created, never a caller's, so they do
 * not join a caller's open transaction. ADR 0114 and 0060.
 */
export class Batcher<Item, Outcome, E> {
  readonly #options: BatcherOptions<Item, Outcome, E>
  readonly #fork: (work: Effect.Effect<void>) => void
  readonly #isDetached: boolean
  #waiting: Array<Entry<Item, Outcome, E>> = []
  #listeners: Array<Listener> = []
  #runs = 0
  #added = 0
  #open = 0
  #startedAt = -Infinity
  /** Items of the previous run. */
  #latest = 0
  #isClosed = false

  private constructor(
    options: BatcherOptions<Item, Outcome, E>,
    fork: (work: Effect.Effect<void>) => void,
    isDetached: boolean
  ) {
    this.#options = options
    this.#fork = fork
    this.#isDetached = isDetached
  }

  /**
   * Ends with its scope, which interrupts the runs and all callers. An interrupted caller withdraws its item if the run
   * has not started, and otherwise waits for the outcome.
   */
  static readonly make = Effect.fnUntraced(function* <Item, Outcome, E>(
    options: BatcherOptions<Item, Outcome, E>
  ): Effect.fn.Return<Batcher<Item, Outcome, E>, never, Scope.Scope> {
    let close = () => {}
    // The runs end first: their fibers were added to the same scope later
    yield* Effect.addFinalizer(() => Effect.sync(() => close()))
    const fork = yield* Effect.updateContext(FiberSet.makeRuntime(), withoutServices<Scope.Scope>)
    const batcher = new Batcher(options, fork, false)
    close = () => batcher.#close()
    return batcher
  })

  /**
   * Outlives callers and scopes: every item is run, even if its caller is interrupted or it is added while the services
   * end.
   */
  static readonly makeDetached = Effect.fnUntraced(function* <Item, Outcome, E>(
    options: BatcherOptions<Item, Outcome, E>
  ): Effect.fn.Return<Batcher<Item, Outcome, E>> {
    const context = withoutServices(yield* Effect.context<never>())
    return new Batcher(options, Effect.runForkWith(context), true)
  })

  /** Adds an item and waits for its outcome. */
  readonly call = (item: Item): Effect.Effect<Outcome, E> =>
    Effect.callback((resume) => {
      const entry = this.#add(item, resume)
      return this.#isDetached ? undefined : this.#withdraw(entry)
    })

  /** Adds an item that nobody waits for. */
  readonly add = (item: Item): void => {
    this.#add(item, undefined)
  }

  /** Waits until every item added so far has been run. */
  readonly settled: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#open === 0) return resume(Effect.void)
    const listener = { upTo: this.#added, open: this.#open, resume: () => resume(Effect.void) }
    this.#listeners.push(listener)
  })

  #add(item: Item, resume: Entry<Item, Outcome, E>["resume"]): Entry<Item, Outcome, E> {
    this.#added += 1
    this.#open += 1
    const entry: Entry<Item, Outcome, E> = { item, n: this.#added, state: "waiting", resume }
    if (this.#isClosed) {
      this.#end(entry, Effect.interrupt)
      return entry
    }
    this.#waiting.push(entry)
    if (this.#runs < this.#options.runsMax) {
      this.#runs += 1
      this.#fork(this.#work)
    }
    return entry
  }

  readonly #work: Effect.Effect<void> = Effect.uninterruptibleMask((restore) =>
    Effect.gen({ self: this }, function* () {
      const { intervalMillis = 0, intervalMillisPerItem = intervalMillis, itemsMax } = this.#options
      while (true) {
        // Items added in the same turn join the batch
        yield* Effect.yieldNow
        if (intervalMillis > 0 && this.#waiting.length > 0) {
          yield* this.#interval(Math.min(intervalMillis, intervalMillisPerItem * this.#latest))
        }
        const batch = this.#waiting.splice(0, itemsMax)
        if (batch.length === 0) break
        this.#startedAt = performance.now()
        this.#latest = batch.length
        for (const entry of batch) entry.state = "running"
        yield* this.#run(batch, restore)
      }
      // In the same step as the check above, so that no item is left behind
      this.#runs -= 1
    })
  )

  #run(
    batch: ReadonlyArray<Entry<Item, Outcome, E>>,
    restore: <A, E2>(effect: Effect.Effect<A, E2>) => Effect.Effect<A, E2>
  ): Effect.Effect<void> {
    const { run, splitBatch = false } = this.#options
    return runBatch(batch, {
      run: (entries) => restore(Effect.suspend(() => run(entries.map(({ item }) => item)))),
      split: (entries) => (splitBatch ? entries.map((entry) => [entry]) : []),
      onExit: (entries, exit) =>
        Effect.sync(() =>
          entries.forEach((entry, index) => this.#end(entry, outcomeAt(exit, index)))
        )
    })
  }

  #end(entry: Entry<Item, Outcome, E>, outcome: Effect.Effect<Outcome, E>): void {
    entry.state = "done"
    this.#open -= 1
    // Before the caller continues, because items that it adds at once belong to later listeners
    if (this.#listeners.length > 0) this.#notify(entry.n)
    entry.resume?.(outcome)
  }

  #notify(n: number): void {
    for (const listener of this.#listeners) if (n <= listener.upTo) listener.open -= 1
    const ready = this.#listeners.filter(({ open }) => open === 0)
    if (ready.length === 0) return
    this.#listeners = this.#listeners.filter(({ open }) => open > 0)
    for (const { resume } of ready) resume()
  }

  #withdraw(entry: Entry<Item, Outcome, E>): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (entry.state === "running") {
        entry.resume = () => resume(Effect.void)
        return
      }
      if (entry.state === "waiting") {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1)
        this.#end(entry, Effect.interrupt)
      }
      resume(Effect.void)
    })
  }

  /** Real time, even under a test clock, because it only saves work. */
  #interval(millis: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      // A timer may fire early, because it counts from the start of its turn of the event loop
      const check = () => {
        const wait = this.#startedAt + millis - performance.now()
        if (wait > 0) afterMillis(Math.ceil(wait), check)
        else resume(Effect.void)
      }
      check()
    })
  }

  #close(): void {
    this.#isClosed = true
    for (const entry of this.#waiting.splice(0)) this.#end(entry, Effect.interrupt)
  }
}

export interface BatchRun<Batch, A, E> {
  readonly run: (batch: Batch) => Effect.Effect<A, E>
  /** The parts to run separately if the batch dies. With fewer than two parts it is not split. */
  readonly split: (batch: Batch) => ReadonlyArray<Batch>
  /** Runs once per part of the batch. */
  readonly onExit: (batch: Batch, exit: Exit.Exit<A, E>) => Effect.Effect<void>
}

/** Runs a batch. If it dies, its parts run separately, so that only a broken part fails. */
export const runBatch = <Batch, A, E>(
  batch: Batch,
  options: BatchRun<Batch, A, E>
): Effect.Effect<void> =>
  Effect.flatMap(Effect.exit(Effect.suspend(() => options.run(batch))), (exit) => {
    const parts = isDefect(exit) ? options.split(batch) : []
    return parts.length > 1
      ? Effect.forEach(parts, (part) => runBatch(part, options), { discard: true })
      : options.onExit(batch, exit)
  })

/** Whether the store is available but cannot accept this: neither a store failure nor an interruption. */
export const isDefect = <A, E>(exit: Exit.Exit<A, E>): exit is Exit.Failure<A, E> =>
  Exit.isFailure(exit) && !Exit.hasFails(exit) && !Exit.hasInterrupts(exit)

const outcomeAt = <Outcome, E>(
  exit: Exit.Exit<ReadonlyArray<Outcome>, E>,
  index: number
): Exit.Exit<Outcome, E> => {
  if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
  const outcome = exit.value[index]
  return outcome === undefined
    ? Exit.die(new Error("A batch returned fewer outcomes than it has items"))
    : Exit.succeed(outcome)
}
