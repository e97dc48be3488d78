import type { Effect } from "effect"
import type { OpenRoute } from "../../catalog/OpenRoutes.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import type { Relayed } from "../../passthrough/Passthrough.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import type { RequestTrace } from "../server/RequestTrace.ts"

/** A call that the fast path started and handed off to the routes, which finish it. ADR 0113. */
export interface HandedOffCall {
  readonly trace: RequestTrace["Service"]
  readonly rest: Effect.Effect<Relayed, Problem | StoreUnavailable>
  readonly token: string
  readonly route: OpenRoute
  /** The call again, for a key that was looked at again. */
  readonly forward: (principal: Principal) => Effect.Effect<Relayed, Problem | StoreUnavailable>
}

/** By Node's request. */
const calls = new WeakMap<object, HandedOffCall>()

export const handedOffCallOf = (source: object): HandedOffCall | undefined => calls.get(source)

export const handOff = (source: object, call: HandedOffCall): void => {
  calls.set(source, call)
}
