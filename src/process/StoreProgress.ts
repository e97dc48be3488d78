import { Context } from "effect"

/** How far this process knows that the store has advanced. docs/standbys.md#how-it-is-noticed */
export interface StoreProgress {
  /** Null: nobody writes heartbeats, as in tests of a store alone. */
  readonly processId: string | null
  /** The highest `advance` that was committed, as the store said. */
  seen: number
}

export const StoreProgress = Context.Reference<StoreProgress>("gateway/process/StoreProgress", {
  defaultValue: () => ({ processId: null, seen: 0 })
})
