import { Context, Effect, Layer, Schema } from "effect"
import { UserId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { LookupStore } from "./LookupStore.ts"
import type { Thing } from "./LookupStore.ts"
import { isTraceId } from "./SearchText.ts"

export type { Thing } from "./LookupStore.ts"

/** Tasks, calls and users all have UUIDs as ids. */
const isUuid = Schema.is(UserId)
const isNamed = (text: string): boolean => /^[a-z]{2,3}_[\w-]{1,80}$/u.test(text)

/** Finds the object with a given id, across all users. docs/reference/keys-and-limits.md#over-all-users */
export class Lookup extends Context.Service<
  Lookup,
  {
    /** Returns nothing if the text does not have the form of an id of this service. */
    readonly find: (text: string) => Effect.Effect<ReadonlyArray<Thing>, StoreUnavailable>
  }
>()("gateway/tasks/Lookup") {
  static readonly layer = Layer.effect(
    Lookup,
    Effect.map(LookupStore, (store) =>
      Lookup.of({
        find: Effect.fn("Lookup.find")(function* (text) {
          if (isUuid(text)) return yield* store.byUuid(text)
          if (isTraceId(text)) return yield* store.byTrace(text)
          return isNamed(text) ? yield* store.byName(text) : []
        })
      })
    )
  )
}
