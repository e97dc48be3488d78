import { Effect, Option, Schema } from "effect"
import { pointerOf } from "../../catalog/FieldFaults.ts"
import { Medium } from "../../catalog/jobs/Expression.ts"
import type { Described } from "../../catalog/jobs/JobModel.ts"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { keysOf } from "../../catalog/jobs/JsonPath.ts"
import { render } from "../../catalog/jobs/Template.ts"
import type { TemplateScope } from "../../catalog/jobs/Template.ts"
import { base64, dataUri, mediaTexts, publicUrlOr } from "../MediaTexts.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import type { FormFile } from "../Multipart.ts"
import type { SubmitMedium, SubmitRequest } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"

/** The content of a submit. */
export type SubmitContent =
  | { readonly json: unknown }
  | { readonly raw: { readonly contentType: string; readonly body: Uint8Array } }

const forms: Readonly<Record<string, MediumText>> = {
  "data-uri": dataUri,
  base64: ({ bytes }) => Effect.map(bytes, base64),
  url: ({ artifactUrl, sourceUrl }) =>
    Effect.succeed(sourceUrl?.startsWith("https://") === true ? sourceUrl : artifactUrl)
}

/** The body field of a medium: `images` for `#/images/0`. */
const fieldOf = ({ pointer }: SubmitMedium): string =>
  decodeURIComponent(pointer.split("/")[1] ?? "")
    .replaceAll("~1", "/")
    .replaceAll("~0", "~")

const textOf =
  ({ media = {} }: Described, inline: MediumText): MediumText =>
  (medium) => {
    const { sentAs = "auto" } = media[fieldOf(medium)] ?? {}
    return (forms[sentAs] ?? publicUrlOr(inline))(medium)
  }

const decodeBody = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))

/** The values that templates can read, without media. */
export const plainScope = ({
  body,
  callbackUrl,
  taskId,
  upstreamModel
}: SubmitRequest): TemplateScope => ({
  body: Option.getOrElse(decodeBody(body), () => ({})),
  model: upstreamModel,
  task: taskId,
  ...(callbackUrl === undefined ? {} : { callback: callbackUrl })
})

/**
 * The values that templates can read. Media are written as their fields require; `inline` writes those without a public
 * URL.
 */
export const withMedia = Effect.fnUntraced(function* (
  request: SubmitRequest,
  described: Described,
  inline: MediumText = dataUri
) {
  const scope = plainScope(request)
  const texts = yield* mediaTexts(request, textOf(described, inline))
  const at = (path: ReadonlyArray<PropertyKey>) => {
    const text = texts(pointerOf(path))
    return text === undefined ? undefined : new Medium(text)
  }
  const fields = Object.entries(Object(scope.body)).map(([field, value]): [string, unknown] => [
    field,
    Array.isArray(value)
      ? value.map((item: unknown, index) => at([field, index]) ?? item)
      : (at([field]) ?? value)
  ])
  return { ...scope, body: Object.fromEntries(fields) }
})

/** The client's request is at fault; nothing was sent. */
const unwritable = (why: string) =>
  new VendorError({
    class: "FATAL_CLIENT",
    message: `The request cannot be written in the vendor's form: ${why}`
  })

const rendered = (template: Parameters<typeof render>[0], scope: TemplateScope) =>
  Effect.mapError(Effect.fromResult(render(template, scope)), unwritable)

const fileAt = (template: unknown): string | undefined =>
  typeof template === "object" && template !== null && "$file" in template
    ? String(template.$file)
    : undefined

/** The medium at a template path: `$.body.image` is the medium at `#/image`. */
const mediumAt = ({ media }: SubmitRequest, path: string): SubmitMedium | undefined => {
  const pointer = pointerOf(keysOf(path).slice(1))
  return media.find((it) => it.pointer === pointer)
}

const formOf = Effect.fnUntraced(function* (
  form: NonNullable<JobProtocol["submit"]["form"]>,
  request: SubmitRequest
) {
  const texts = Object.entries(form).filter(([, template]) => fileAt(template) === undefined)
  const values = new Map(
    Object.entries(Object(yield* rendered(Object.fromEntries(texts), plainScope(request))))
  )
  const fields: Array<readonly [string, string | FormFile]> = []
  for (const [name, template] of Object.entries(form)) {
    const path = fileAt(template)
    if (path === undefined) {
      const value = values.get(name)
      if (value === undefined || value === null) continue
      fields.push([name, typeof value === "object" ? JSON.stringify(value) : String(value)])
      continue
    }
    const medium = mediumAt(request, path)
    if (medium === undefined) continue
    const { bytes, mime } = medium
    const file = { name: `file.${mime.split("/")[1] ?? "bin"}`, mime, bytes: yield* bytes }
    fields.push([name, file])
  }
  return { raw: yield* multipart(fields) }
})

/** The body of a submit, from the templates of the model or else of its vendor. */
export const contentOf = Effect.fnUntraced(function* (
  { submit }: JobProtocol,
  described: Described,
  request: SubmitRequest
): Effect.fn.Return<SubmitContent, VendorError> {
  const { form, json } =
    described.submit?.json === undefined && described.submit?.form === undefined
      ? submit
      : described.submit
  if (form !== undefined) return yield* formOf(form, request)
  return { json: (yield* rendered(json ?? {}, yield* withMedia(request, described))) ?? {} }
})

/**
 * Whether a value that the vendor shows equals the one that was sent; `undefined` if it shows none, or none was sent.
 */
export const isShown = (shown: unknown, sent: unknown): boolean | undefined =>
  shown === undefined || shown === null || sent === undefined
    ? undefined
    : JSON.stringify(shown) === JSON.stringify(sent) || String(shown) === String(sent)
