import { Context } from "effect"
import type { UserId } from "../domain/Ids.ts"
import type { KeyDigest } from "./KeyText.ts"

/** Keys that one process remembers. */
const knownKeysMax = 10_000

/**
 * Whose key it was when it was last valid. It lets nobody in: it only says, before a key is looked up, whose
 * share of the process a request takes. A key never belongs to another user.
 */
export class KeyOwners {
  readonly #owners = new Map<KeyDigest, UserId>()

  ownerOf(digest: KeyDigest): UserId | undefined {
    return this.#owners.get(digest)
  }

  learn(digest: KeyDigest, owner: UserId): void {
    if (this.#owners.has(digest)) return
    if (this.#owners.size >= knownKeysMax) {
      const oldest = this.#owners.keys().next()
      if (oldest.done !== true) this.#owners.delete(oldest.value)
    }
    this.#owners.set(digest, owner)
  }
}

/** One for the process. */
export const KnownKeys = Context.Reference<KeyOwners>("gateway/users/KnownKeys", {
  defaultValue: () => new KeyOwners()
})
