import { Effect, Queue } from "effect"
import type { Duration, Scope } from "effect"

/** A subscription of one key. */
export interface Signal {
  /** Waits until the key is notified or the time has passed. Several notifications since the last wait count as one. */
  readonly wait: (atMost: Duration.Duration) => Effect.Effect<void>
}

/**
 * Signals within this process, by key. The cost of a notification depends only on the number of subscribers to its key.
 * Signals are kept in memory only, so every waiter also has to poll.
 */
export class KeyedSignal<Key> {
  readonly #queues = new Map<Key, Set<Queue.Queue<void>>>()

  /** The number of keys with subscribers. */
  get size(): number {
    return this.#queues.size
  }

  /** Receives the key's notifications from now on, until the scope closes. */
  subscribe(key: Key): Effect.Effect<Signal, never, Scope.Scope> {
    const subscribed = Effect.tap(Queue.sliding<void>(1), (queue) => this.#add(key, queue))
    return Effect.map(
      Effect.acquireRelease(subscribed, (queue) => this.#remove(key, queue)),
      (queue): Signal => ({
        wait: (atMost) => Effect.asVoid(Effect.timeoutOption(Queue.take(queue), atMost))
      })
    )
  }

  notifyUnsafe(key: Key): void {
    for (const queue of this.#queues.get(key) ?? []) Queue.offerUnsafe(queue, undefined)
  }

  #add(key: Key, queue: Queue.Queue<void>): Effect.Effect<void> {
    return Effect.sync(() => {
      const others = this.#queues.get(key)
      if (others === undefined) this.#queues.set(key, new Set([queue]))
      else others.add(queue)
    })
  }

  #remove(key: Key, queue: Queue.Queue<void>): Effect.Effect<void> {
    return Effect.sync(() => {
      const queues = this.#queues.get(key)
      queues?.delete(queue)
      if (queues?.size === 0) this.#queues.delete(key)
    })
  }
}
