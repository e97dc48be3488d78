import { Effect, Schema } from "effect"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { namesIn, pointerOf } from "../catalog/FieldFaults.ts"
import { Medium } from "../catalog/jobs/Expression.ts"
import type { Described } from "../catalog/jobs/JobModel.ts"
import { isMapped, upstreamInput } from "../catalog/UpstreamInput.ts"
import { bodyFields } from "./BodyFields.ts"
import { base64, dataUri, mediaTexts, publicUrlOr } from "./MediaTexts.ts"
import type { MediumText } from "./MediaTexts.ts"
import type { SubmitMedium, SubmitRequest } from "./VendorClient.ts"
import type { VendorError } from "./VendorError.ts"

const fieldsOf = bodyFields(Schema.Record(Schema.String, Schema.Unknown))

const forms: Readonly<Record<string, MediumText>> = {
  "data-uri": dataUri,
  base64: ({ bytes }) => Effect.map(bytes, base64),
  url: ({ artifactUrl, sourceUrl }) =>
    Effect.succeed(sourceUrl?.startsWith("https://") === true ? sourceUrl : artifactUrl)
}

/** The body field of a medium: `images` for `#/images/0`. */
const fieldOf = ({ pointer }: SubmitMedium): string => namesIn(pointer)[0] ?? ""

const textOf =
  ({ media = {} }: Partial<Described>, inline: MediumText): MediumText =>
  (medium) => {
    const { sentAs = "auto" } = media[fieldOf(medium)] ?? {}
    return (forms[sentAs] ?? publicUrlOr(inline))(medium)
  }

/**
 * The body with its fields renamed as the catalog says; the body of a described model keeps its names. Media are written
 * as their fields require. By default, those that the client sent by https URL keep that URL; `inline` writes all others.
 */
export const flatInput = Effect.fnUntraced(function* (
  request: SubmitRequest,
  inline: MediumText = dataUri
): Effect.fn.Return<Readonly<Record<string, unknown>>, VendorError> {
  const { described, input, model } = request
  const fields = yield* fieldsOf(request)
  const texts = yield* mediaTexts(request, textOf(described ?? {}, inline))
  const at = (path: ReadonlyArray<PropertyKey>) => {
    const text = texts(pointerOf(path))
    return text === undefined ? undefined : new Medium(text)
  }
  const entries = Object.entries(fields).map(([field, value]): [string, unknown] => [
    field,
    Array.isArray(value)
      ? value.map((item: unknown, index) => at([field, index]) ?? item)
      : (at([field]) ?? value)
  ])
  const body = Object.fromEntries(entries)
  return described === undefined ? upstreamInput(model, body, input) : body
})

/** The texts, numbers and booleans of that body, without its media. */
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
