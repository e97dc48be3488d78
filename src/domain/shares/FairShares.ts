import { Effect, Schema } from "effect"
import type { Scope } from "effect"
import { LinkedList } from "./LinkedList.ts"

/** The caller has used up its share, and its maximum number of requests is already waiting. */
export class ShareExhausted extends Schema.TaggedError<ShareExhausted>()("ShareExhausted", {}) {}

export interface ShareBounds {
  /** The number of places. */
  readonly capacity: number
  /** The fraction of all places that a caller gets while no other caller holds one, from 0 to 1. */
  readonly aloneMax: number
  /** Most places of one caller. */
  readonly perCallerMax?: number
  /** Most waiting requests of one caller; the next one is refused. */
  readonly queueMax: number
}

/**
 * Whether a caller may take places, given how many it would then hold and how many would stay free. A caller
 * without a place may always take free ones.
 */
export const isWithinShare = (
  aloneMax: number,
  {
    before,
    left,
    places
  }: { readonly before: number; readonly left: number; readonly places: number }
): boolean => left >= 0 && (before === 0 || (before + places) * (1 - aloneMax) <= left * aloneMax)

interface Waiting {
  readonly places: number
  readonly enter: () => void
}

interface Caller {
  held: number
  queued: number
  readonly waiting: LinkedList<Waiting>
}

/**
 * Divides places among callers, so that no caller can take them from the others.
 *
 * A caller may take places as long as it then holds no more than a fixed multiple of what stays free (`aloneMax` 0.75:
 * three times). Alone it gets `aloneMax` of all places. The more callers there are, the less each gets, and something
 * always stays free for the next one. A caller without a place gets one whenever one is free. A freed place goes to the
 * waiting caller that holds the fewest, in turn among equals.
 *
 * Taking and giving back is O(1) while no caller waits, otherwise linear in the number of waiting callers.
 */
export class FairShares {
  readonly #aloneMax: number
  readonly #perCallerMax: number
  readonly #queueMax: number
  readonly #callers = new Map<string, Caller>()
  /** Callers with waiting requests; the most recently served one is last. */
  readonly #waiting = new Set<Caller>()
  #capacity: number
  #taken = 0

  constructor({ aloneMax, capacity, perCallerMax = Infinity, queueMax }: ShareBounds) {
    this.#aloneMax = aloneMax
    this.#perCallerMax = perCallerMax
    this.#capacity = capacity
    this.#queueMax = queueMax
  }

  /** Taken places. */
  get taken(): number {
    return this.#taken
  }

  /** Callers that hold a place or wait for one. */
  get callers(): number {
    return this.#callers.size
  }

  /** Waiting requests of a caller. */
  queuedBy(name: string): number {
    return this.#callers.get(name)?.queued ?? 0
  }

  /** Places taken beyond a reduced capacity are not reclaimed. */
  set capacity(capacity: number) {
    this.#capacity = capacity
    this.#serve()
  }

  /**
   * Takes places now. Returns false if the caller has used up its share or others are first. Return places with `give`.
   */
  take(name: string, places = 1): boolean {
    if (this.#waiting.size > 0) return this.#takeBeforeWaiting(name, places)
    const known = this.#callers.get(name)
    if (!this.#mayTake(known?.held ?? 0, places)) return false
    this.#hold(known ?? this.#add(name), places)
    return true
  }

  /** Returns taken places. */
  give(name: string, places = 1): void {
    const caller = this.#callers.get(name)
    if (caller === undefined) return
    caller.held -= places
    this.#taken -= places
    this.#forget(name, caller)
    if (this.#waiting.size > 0) this.#serve()
  }

  /**
   * Takes places as soon as they are within the caller's share, and then calls `enter`, possibly at once.
   * Returns a function that cancels the wait, or undefined if too many of the caller's requests wait.
   */
  wait(name: string, places: number, enter: () => void): (() => void) | undefined {
    if (this.take(name, places)) {
      enter()
      return () => {}
    }
    const caller = this.#callers.get(name) ?? this.#add(name)
    if (caller.queued >= this.#queueMax) {
      this.#forget(name, caller)
      return undefined
    }
    const node = this.#enqueue(caller, { places, enter })
    return () => {
      if (!node.isIn) return
      this.#dequeue(caller, node)
      this.#forget(name, caller)
      // The cancelled request may have blocked others
      this.#serve()
    }
  }

  /** Waits for places, then runs an effect that holds them. */
  readonly within =
    (name: string, places = 1) =>
    <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E | ShareExhausted, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(
          Effect.suspend(() =>
            this.take(name, places) ? Effect.void : restore(this.#entered(name, places))
          ),
          Effect.ensuring(
            restore(use),
            Effect.sync(() => this.give(name, places))
          )
        )
      )

  /** Holds a place until the scope ends; refused at once if the caller has no share left. */
  readonly hold = (name: string): Effect.Effect<void, ShareExhausted, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.suspend(() => (this.take(name) ? Effect.void : exhausted)),
      () => Effect.sync(() => this.give(name))
    )

  /** For a caller that has to wait. */
  #entered(name: string, places: number): Effect.Effect<void, ShareExhausted> {
    return Effect.callback((resume) => {
      let hasEntered = false
      const giveUp = this.wait(name, places, () => {
        hasEntered = true
        resume(Effect.void)
      })
      if (giveUp === undefined) return resume(exhausted)
      return Effect.sync(() => {
        // Interrupted after taking the place and before the fiber used it
        if (hasEntered) this.give(name, places)
        else giveUp()
      })
    })
  }

  /** Takes places if a waiting request would be served now: enqueues one, serves, and removes it if it still waits. */
  #takeBeforeWaiting(name: string, places: number): boolean {
    const caller = this.#callers.get(name) ?? this.#add(name)
    let isTaken = false
    const enter = () => {
      isTaken = true
    }
    const node = this.#enqueue(caller, { places, enter })
    this.#serve()
    if (!isTaken) this.#dequeue(caller, node)
    this.#forget(name, caller)
    return isTaken
  }

  #mayTake(before: number, places: number): boolean {
    if (before + places > this.#perCallerMax) return false
    const left = this.#capacity - this.#taken - places
    return isWithinShare(this.#aloneMax, { before, left, places })
  }

  #serve(): void {
    while (this.#waiting.size > 0) {
      const caller = this.#next()
      const first = caller?.waiting.first
      if (caller === undefined || first === undefined) return
      if (!this.#mayTake(caller.held, first.value.places)) return
      this.#dequeue(caller, first)
      // Moves the caller behind the others that hold as many
      if (this.#waiting.delete(caller)) this.#waiting.add(caller)
      this.#hold(caller, first.value.places)
      first.value.enter()
    }
  }

  #next(): Caller | undefined {
    let next: Caller | undefined
    for (const caller of this.#waiting) {
      if (next === undefined || caller.held < next.held) next = caller
    }
    return next
  }

  #hold(caller: Caller, places: number): void {
    caller.held += places
    this.#taken += places
  }

  #enqueue(caller: Caller, waiting: Waiting) {
    caller.queued += 1
    this.#waiting.add(caller)
    return caller.waiting.add(waiting)
  }

  #dequeue(caller: Caller, node: ReturnType<LinkedList<Waiting>["add"]>): void {
    caller.waiting.remove(node)
    caller.queued -= 1
    if (caller.queued === 0) this.#waiting.delete(caller)
  }

  #add(name: string): Caller {
    const caller: Caller = { held: 0, queued: 0, waiting: new LinkedList() }
    this.#callers.set(name, caller)
    return caller
  }

  #forget(name: string, caller: Caller): void {
    if (caller.held === 0 && caller.queued === 0) this.#callers.delete(name)
  }
}

const exhausted = Effect.fail(new ShareExhausted())
