import { inject } from "vitest"

/** A gateway that runs as a process of its own, and what is to be expected of it. */
export interface World {
  readonly name: "the sandbox" | "a recorded upstream"
  readonly url: string
  readonly key: string
  /** The text of every response. */
  readonly text: string
}

declare module "vitest" {
  export interface ProvidedContext {
    worlds: ReadonlyArray<World>
  }
}

export const worlds = (): ReadonlyArray<World> => inject("worlds")
