import { Context } from "effect"
import type { UserId } from "../domain/Ids.ts"
import { digestOf } from "./KeyText.ts"
import type { KeyDigest } from "./KeyText.ts"

/** Keys that one process remembers. */
const knownKeysMax = 10_000

/** Remembers something of a key; of too many the one that was added first is forgotten. */
export const remember = <A>(known: Map<KeyDigest, A>, digest: KeyDigest, value: A): void => {
  if (known.size >= knownKeysMax && !known.has(digest)) {
    for (const oldest of known.keys()) {
      known.delete(oldest)
      break
    }
  }
  known.set(digest, value)
}

/**
 * Whose key it was when it was last valid. It lets nobody in: it only says, before a key is looked up, whose
 * share of the process a request takes. A key never belongs to another user.
 */
export class KeyOwners {
  readonly #owners = new Map<KeyDigest, UserId>()

  ownerOf(digest: KeyDigest): UserId | undefined {
    return this.#owners.get(digest)
  }

  learn(key: string, owner: UserId): void {
    remember(this.#owners, digestOf(key), owner)
  }
}

/** One for the process. */
export const KnownKeys = Context.Reference<KeyOwners>("gateway/users/KnownKeys", {
  defaultValue: () => new KeyOwners()
})
