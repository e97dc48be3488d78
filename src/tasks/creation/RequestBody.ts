import { Array as Arr, Effect, Result } from "effect"
import { splitMetadata } from "../../catalog/bodies/Metadata.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { capFaults } from "../../catalog/FieldFaults.ts"
import { acceptBody } from "../../catalog/media/Media.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { mediaFaults, refusedFields } from "../../vendors/BodyFaults.ts"

/**
 * Decodes a body with its inline media, by the rules of its label, and its metadata. `takes`: of these models,
 * which have one label, those whose adapters take it. Fails with all faults at once when there is none.
 */
export const decodeRequest = Effect.fnUntraced(function* (
  entries: Arr.NonEmptyReadonlyArray<CatalogEntry>,
  given: unknown
) {
  const { faults: metadataFaults, input, metadata } = splitMetadata(given)
  const accepted = yield* Effect.result(acceptBody(entries[0].label, input))
  const judged = entries.map((entry) => ({
    entry,
    faults: [
      ...(Result.isFailure(accepted) ? [] : mediaFaults(entry, accepted.success)),
      ...refusedFields(entry, input)
    ]
  }))
  const takes = judged.flatMap(({ entry, faults }) => (faults.length === 0 ? [entry] : []))
  const faults = [
    ...(Result.isFailure(accepted) ? accepted.failure.errors : []),
    ...(takes.length === 0 ? unique(judged.flatMap((it) => it.faults)) : []),
    ...metadataFaults
  ]
  if (Arr.isReadonlyArrayNonEmpty(faults)) return yield* invalid(capFaults(faults))
  return { ...(yield* Effect.orDie(Effect.fromResult(accepted))), metadata, takes }
})

/** Several models may have the same fault. */
const unique = (faults: ReadonlyArray<FieldFault>): ReadonlyArray<FieldFault> => [
  ...new Map(faults.map((fault) => [`${fault.pointer} ${fault.detail}`, fault])).values()
]
