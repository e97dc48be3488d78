import { Context } from "effect"
import type { UserId } from "../domain/Ids.ts"
import { digestOf } from "./KeyText.ts"
import type { KeyDigest } from "./KeyText.ts"

/** The maximum number of keys that one process remembers. */
const knownKeysMax = 10_000

/** Stores a value for a key. When the map is full, drops the oldest entry. */
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
 * The user of each key that was recently valid. It grants no access: it only decides, before the key is looked up,
 * whose share of the process a request uses. A key never changes its user.
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

/** One per process. */
export const KnownKeys = Context.Reference<KeyOwners>("gateway/users/KnownKeys", {
  defaultValue: () => new KeyOwners()
})
