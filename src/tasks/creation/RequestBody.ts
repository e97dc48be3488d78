import { Array as Arr, Effect, Option, Result } from "effect"
import { splitAttachments } from "../../catalog/bodies/Attachments.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { capFaults } from "../../catalog/FieldFaults.ts"
import { acceptBody } from "../../catalog/media/Media.ts"
import { invalid } from "../../domain/Problem.ts"
import type { FieldFault } from "../../domain/Problem.ts"
import { mediaFaults, refusedFields } from "../../vendors/BodyFaults.ts"
import { urlFault, urlRefused } from "../../webhooks/WebhookUrl.ts"
import type { CheckUrl } from "../../webhooks/WebhookUrl.ts"

/**
 * Decodes a body with its inline media and attachments by the rules of its label. `takes` lists the given models whose
 * adapters accept the body; all given models share a label. If there is none, fails with all faults at once; fails with
 * 2011 if only the webhook URL is refused.
 */
export const decodeRequest = Effect.fnUntraced(function* (
  entries: Arr.NonEmptyReadonlyArray<CatalogEntry>,
  given: unknown,
  checkUrl: CheckUrl
) {
  const { faults: attachedFaults, input, metadata, webhook } = splitAttachments(given)
  const accepted = yield* Effect.result(acceptBody(entries[0], input))
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
    ...attachedFaults
  ]
  const refusal = yield* urlFault(checkUrl, webhook)
  const all = [...faults, ...Option.toArray(refusal)]
  if (Option.isSome(refusal) && faults.length === 0) return yield* urlRefused(refusal.value)
  if (Arr.isReadonlyArrayNonEmpty(all)) return yield* invalid(capFaults(all))
  return { ...(yield* Effect.orDie(Effect.fromResult(accepted))), metadata, webhook, takes }
})

/** Removes duplicates, because several models may report the same fault. */
const unique = (faults: ReadonlyArray<FieldFault>): ReadonlyArray<FieldFault> => [
  ...new Map(faults.map((fault) => [`${fault.pointer} ${fault.detail}`, fault])).values()
]
