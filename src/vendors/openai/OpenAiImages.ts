import { Duration, Effect, Schema } from "effect"
import type { ImageInfo } from "../../catalog/media/Image.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { blocking } from "../Blocking.ts"
import { bodyFields, unlessOneOf } from "../BodyFields.ts"
import { emptyResult } from "../Faults.ts"
import { multipart } from "../Multipart.ts"
import type { FormFile } from "../Multipart.ts"
import { optionalField } from "../OptionalField.ts"
import { callVendor } from "../VendorCall.ts"
import type { ResultItem, SubmitRequest, Submitted, VendorAccount } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { baseOf, apiOf } from "./OpenAiCalls.ts"
import { sizeOf } from "./OpenAiSizes.ts"

const generateTimeout = Duration.seconds(300)

const readFields = bodyFields(
  Schema.Struct({
    prompt: Schema.String,
    n: Schema.optionalKey(Schema.Int),
    size: Schema.optionalKey(Schema.NullOr(Schema.String)),
    aspect_ratio: Schema.optionalKey(Schema.String),
    resolution: Schema.optionalKey(Schema.String)
  })
)

/** The fields of a body that are sent. */
export const taken: ReadonlySet<string> = new Set([
  "prompt",
  "images",
  "n",
  "size",
  "aspect_ratio",
  "resolution"
])

/** The formats that the vendor documents for edits. */
export const formatFault = (_body: unknown, { format }: ImageInfo): string | undefined =>
  unlessOneOf(["PNG", "JPEG", "WEBP"], format)

const Generated = Schema.Struct({
  data: optionalField(
    Schema.Array(
      Schema.Struct({
        b64_json: optionalField(Schema.String),
        url: optionalField(Schema.String)
      })
    )
  ),
  output_format: optionalField(Schema.String)
})

/** A blocking call; an edit when the body has images. docs/reference/vendors.md#openai-images */
export const make = (context: AdapterContext): VendorAccount => {
  const api = apiOf(context)
  const base = baseOf(context)
  return {
    accountId: context.accountId,
    submit: Effect.fn("OpenAiImages.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const fields = yield* fieldsOf(request)
      const common = {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        timeout: generateTimeout
      } as const
      const generated = yield* request.media.length === 0
        ? callVendor(api, {
            ...common,
            url: `${base}/images/generations`,
            json: fields,
            schema: Generated
          })
        : callVendor(api, {
            ...common,
            url: `${base}/images/edits`,
            raw: yield* formOf(fields, request),
            schema: Generated
          })
      const mime = `image/${generated.output_format ?? "png"}`
      const items = (generated.data ?? []).flatMap(({ b64_json: data, url }) =>
        itemOf(mime, data, url)
      )
      return items.length > 0 ? { _tag: "Done", result: { items } } : yield* emptyResult()
    }),
    ...blocking
  }
}

const itemOf = (
  mime: string,
  data: string | undefined,
  url: string | undefined
): ReadonlyArray<ResultItem> => {
  if (data !== undefined) {
    return [{ _tag: "Bytes", bytes: new Uint8Array(Buffer.from(data, "base64")), mime }]
  }
  return url === undefined ? [] : [{ _tag: "Url", url, mime, needsAuth: false, isShortLived: true }]
}

const fieldsOf = (request: SubmitRequest) =>
  Effect.map(readFields(request), ({ n, prompt, ...asked }) => {
    const size = sizeOf(request.upstreamModel, asked)
    return {
      model: request.upstreamModel,
      prompt,
      n: n ?? 1,
      ...(size === undefined ? {} : { size })
    }
  })

const formOf = Effect.fnUntraced(function* (
  fields: Readonly<Record<string, string | number>>,
  { media }: SubmitRequest
) {
  const pictures = yield* Effect.forEach(media, ({ bytes, mime }, index) =>
    Effect.map(bytes, (it): readonly [string, FormFile] => [
      "image[]",
      { name: `image${index}.${mime.split("/")[1] ?? "png"}`, mime, bytes: it }
    ])
  )
  return yield* multipart([
    ...Object.entries(fields).map(([name, value]) => [name, String(value)] as const),
    ...pictures
  ])
})
