import { Effect, Schema } from "effect"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { isMapped, upstreamInput } from "../catalog/UpstreamInput.ts"
import { bodyFields } from "./BodyFields.ts"
import { withMedia } from "./described/JobBody.ts"
import { dataUri, mediaTexts, publicUrlOr } from "./MediaTexts.ts"
import type { MediumText } from "./MediaTexts.ts"
import type { SubmitRequest } from "./VendorClient.ts"
import type { VendorError } from "./VendorError.ts"

const fieldsOf = bodyFields(Schema.Record(Schema.String, Schema.Unknown))

/**
 * The body with its fields renamed as the catalog says; the body of a described model keeps its names. Media that the
 * client sent by https URL keep that URL; `inline` writes all others.
 */
export const flatInput = Effect.fnUntraced(function* (
  request: SubmitRequest,
  inline: MediumText = dataUri
): Effect.fn.Return<Readonly<Record<string, unknown>>, VendorError> {
  const { described } = request
  if (described !== undefined) return (yield* withMedia(request, described, inline)).body
  const fields = yield* fieldsOf(request)
  const at = yield* mediaTexts(request, publicUrlOr(inline))
  const entries = Object.entries(fields).map(([field, value]): [string, unknown] => [
    field,
    Array.isArray(value)
      ? value.map((item: unknown, index) => at(`#/${field}/${index}`) ?? item)
      : (at(`#/${field}`) ?? value)
  ])
  return upstreamInput(request.model, Object.fromEntries(entries), request.input)
})

/** The texts, numbers and booleans of that input, without its media. */
export const plainInput = (request: SubmitRequest): Readonly<Record<string, unknown>> => {
  const { body, described, input, model } = request
  const fields = typeof body === "object" && body !== null ? { ...body } : {}
  const sent = described === undefined ? upstreamInput(model, fields, input) : fields
  return Object.fromEntries(
    Object.entries(sent).filter(([, value]) =>
      typeof value === "string"
        ? !/^(?:artifact:|data:|https?:)/iu.test(value)
        : typeof value === "number" || typeof value === "boolean"
    )
  )
}

/** Whether the upstream model has the field: its described body has it, or the catalog maps it. ADR 0143. */
export const takes = ({ described, input, label }: CatalogEntry, field: string): boolean =>
  described !== undefined || isMapped(label, field, input)
