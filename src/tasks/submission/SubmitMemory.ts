import type { Effect } from "effect"
import {
  ofProcess,
  submitMediaBytesMax,
  submitMediaShareMax,
  submitMediaWaitingMax
} from "../../domain/limits/ShareLimits.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import type { ShareExhausted } from "../../domain/shares/FairShares.ts"
import type { SubmitMedium } from "../../vendors/VendorClient.ts"
import type { OwnedTask } from "../running/OwnedTask.ts"

interface Submit {
  readonly owned: OwnedTask
  readonly media: ReadonlyArray<SubmitMedium>
}

/**
 * Limits the memory of submits. An adapter holds the media as bytes and as text until the vendor responds. A submit
 * whose media exceed its user's share of the memory waits before its attempt begins. ADR 0140, 0277.
 */
export const makeSubmitMemory = (processes: number) => {
  const capacity = ofProcess(submitMediaBytesMax, processes)
  const memory = new FairShares({
    capacity,
    aloneMax: submitMediaShareMax,
    queueMax: submitMediaWaitingMax
  })
  return {
    within:
      ({ media, owned }: Submit) =>
      <A, E>(submit: Effect.Effect<A, E>): Effect.Effect<A, E | ShareExhausted> => {
        const bytes = media.reduce((sum, { size }) => sum + size, 0)
        return bytes === 0
          ? submit
          : memory.within(owned.task.userId, Math.min(bytes, capacity))(submit)
      }
  }
}
