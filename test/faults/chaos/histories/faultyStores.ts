import { Context, Deferred, Effect, Layer, Stream } from "effect"
import { StoreUnavailable } from "../../../../src/domain/Problem.ts"
import * as Gateway from "../../../../src/Gateway.ts"

/**
 * What happens at one call of a store: it fails before or after doing its work; it is slow; the process dies before or
 * after it; or the whole process stops for a while.
 */
export type Kind = "fails" | "fails when done" | "is slow" | "dies" | "dies when done" | "sleeps"

/** The call that is hit: the n-th of this method, over all processes. */
export interface StoreFault {
  readonly call: string
  readonly nth: number
  readonly kind: Kind
}

/** A process of a history, as seen by its stores. */
export interface Life {
  isDead: boolean
  /** While it sleeps, the process does nothing until this completes. */
  sleep: Deferred.Deferred<void> | undefined
  /** When the history is over, whatever a dead process waits for fails. */
  readonly over: Deferred.Deferred<void>
}

export interface Faults {
  /** The number of calls so far, by method. */
  readonly counts: Map<string, number>
  readonly plan: ReadonlyArray<StoreFault>
  /** Called when the process dies or falls asleep. */
  readonly onEnd: (kind: "dies" | "sleeps") => void
}

const unavailable = new StoreUnavailable({ cause: "the history says so" })

/** A dead process waits for its store forever. */
const dead = ({ over }: Life) =>
  Effect.andThen(Deferred.await(over), Effect.die("this process is dead"))

const die = (life: Life, { onEnd }: Faults) =>
  Effect.suspend(() => {
    life.isDead = true
    onEnd("dies")
    return dead(life)
  })

const hit = <A, E, R>(
  faults: Faults,
  life: Life,
  call: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | StoreUnavailable, R> => {
  const nth = (faults.counts.get(call) ?? 0) + 1
  faults.counts.set(call, nth)
  const kind = faults.plan.find((it) => it.call === call && it.nth === nth)?.kind
  switch (kind) {
    case "fails":
      return Effect.fail(unavailable)
    case "fails when done":
      return Effect.andThen(effect, Effect.fail(unavailable))
    case "is slow":
      return Effect.delay(effect, "3 seconds")
    case "dies":
      return die(life, faults)
    case "dies when done":
      return Effect.andThen(effect, die(life, faults))
    case "sleeps":
      life.sleep = Deferred.makeUnsafe<void>()
      faults.onEnd("sleeps")
      return Effect.andThen(Deferred.await(life.sleep), effect)
    case undefined:
      return effect
  }
}

const awake = <A, E, R>(life: Life, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    if (life.isDead) return dead(life)
    if (life.sleep === undefined) return effect
    return Effect.andThen(Deferred.await(life.sleep), awake(life, effect))
  })

const wrap = (key: string, service: object, faults: Faults, life: Life): object => {
  const name = key.split("/").at(-1) ?? key
  const guard = (method: string, value: unknown): unknown => {
    if (Stream.isStream(value) || !Effect.isEffect(value)) return value
    const call = `${name}.${method}`
    const effect = value as Effect.Effect<unknown, unknown>
    return awake(
      life,
      Effect.suspend(() => hit(faults, life, call, effect))
    ).pipe(Effect.tap(() => (life.isDead ? dead(life) : Effect.void)))
  }
  return Object.fromEntries(
    Object.entries(service).map(([method, value]) => [
      method,
      typeof value === "function"
        ? (...words: ReadonlyArray<unknown>) => guard(method, value(...words))
        : guard(method, value)
    ])
  )
}

/** All stores of the gateway, with the faults of a history. */
export const faultyStores = (faults: Faults, life: Life): typeof Gateway.stores =>
  Layer.effectContext(
    Effect.map(Layer.build(Gateway.stores), (context) =>
      Context.makeUnsafe(
        new Map(
          [...context.mapUnsafe].map(([key, service]) => [
            key,
            typeof service === "object" && service !== null && key.endsWith("Store")
              ? wrap(key, service, faults, life)
              : service
          ])
        )
      )
    )
  ) as typeof Gateway.stores
