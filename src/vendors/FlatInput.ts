import { Effect, Schema } from "effect"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { isMapped, upstreamInput } from "../catalog/UpstreamInput.ts"
import { bodyFields } from "./BodyFields.ts"
import { dataUri, mediaTexts, publicUrlOr } from "./MediaTexts.ts"
import type { MediumText } from "./MediaTexts.ts"
import type { SubmitRequest } from "./VendorClient.ts"

const fieldsOf = bodyFields(Schema.Record(Schema.String, Schema.Unknown))

/**
 * The body with its fields renamed by the catalog. Media sent by https URL keep their URL; others are written by
 * `inline`.
 */
export const flatInput = Effect.fnUntraced(function* (
  request: SubmitRequest,
  inline: MediumText = dataUri
) {
  const fields = yield* fieldsOf(request)
  const at = yield* mediaTexts(request, publicUrlOr(inline))
  const withMedia = Object.entries(fields).map(([field, value]): [string, unknown] => [
    field,
    Array.isArray(value)
      ? value.map((item: unknown, index) => at(`#/${field}/${index}`) ?? item)
      : (at(`#/${field}`) ?? value)
  ])
  return upstreamInput(request.model, Object.fromEntries(withMedia), request.input)
})

/** The texts, numbers and switches of that input, without its media. */
export const plainInput = (request: SubmitRequest): Readonly<Record<string, unknown>> => {
  const { body, input, model } = request
  const fields = typeof body === "object" && body !== null ? { ...body } : {}
  return Object.fromEntries(
    Object.entries(upstreamInput(model, fields, input)).filter(([, value]) =>
      typeof value === "string"
        ? !/^(?:artifact:|data:|https?:)/iu.test(value)
        : typeof value === "number" || typeof value === "boolean"
    )
  )
}

/** Whether the catalog maps the field to the upstream model. ADR 0143. */
export const takes = ({ input, label }: CatalogEntry, field: string): boolean =>
  isMapped(label, field, input)
