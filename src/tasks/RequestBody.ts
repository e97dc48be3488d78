import { Array as Arr, Effect, Result } from "effect"
import { splitMetadata } from "../catalog/bodies/Metadata.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { capFaults } from "../catalog/FieldFaults.ts"
import { acceptBody } from "../catalog/media/Media.ts"
import { invalid } from "../domain/Problem.ts"
import { mediaFaults, refusedFields } from "../vendors/BodyFaults.ts"

/**
 * Decodes a body with its inline media, by the rules of its label and of the entry's adapter, and its
 * metadata; fails with all faults at once.
 */
export const decodeRequest = Effect.fnUntraced(function* (entry: CatalogEntry, given: unknown) {
  const { faults: metadataFaults, input, metadata } = splitMetadata(given)
  const accepted = yield* Effect.result(acceptBody(entry.label, input))
  const faults = [
    ...(Result.isFailure(accepted)
      ? accepted.failure.errors
      : mediaFaults(entry, accepted.success)),
    ...refusedFields(entry, input),
    ...metadataFaults
  ]
  if (Arr.isReadonlyArrayNonEmpty(faults)) return yield* invalid(capFaults(faults))
  return { ...(yield* Effect.orDie(Effect.fromResult(accepted))), metadata }
})
