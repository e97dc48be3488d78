import type { Effect } from "effect"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"
import type { RequestTrace } from "../server/RequestTrace.ts"

/** A call that was begun before the routes saw its request: they have the rest of it. ADR 0113. */
export interface HandedOffCall {
  readonly trace: RequestTrace["Service"]
  readonly rest: Effect.Effect<Relayed, Problem | StoreUnavailable>
}

const begun = new WeakMap<object, HandedOffCall>()

/** Of Node's request. */
export const begunOf = (source: object): HandedOffCall | undefined => begun.get(source)

export const handOff = (source: object, call: HandedOffCall): void => {
  begun.set(source, call)
}
