import { Effect, Option, Result, Schema } from "effect"
import { pointerOf } from "../../catalog/FieldFaults.ts"
import type { JobProtocol } from "../../catalog/jobs/JobProtocol.ts"
import { first, keysOf } from "../../catalog/jobs/JsonPath.ts"
import { render } from "../../catalog/jobs/Template.ts"
import type { TemplateScope } from "../../catalog/jobs/Template.ts"
import { inspectImage } from "../../catalog/media/Image.ts"
import type { ImageInfo } from "../../catalog/media/Image.ts"
import type { ImageRules } from "../../catalog/media/MediaRules.ts"
import { flatInput } from "../FlatInput.ts"
import type { MediumText } from "../MediaTexts.ts"
import { multipart } from "../Multipart.ts"
import type { FormFile } from "../Multipart.ts"
import type { SubmitMedium, SubmitRequest } from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import { formOf } from "./ModelForm.ts"

/** The content of a submit. */
export type SubmitContent =
  | { readonly json: unknown }
  | { readonly raw: { readonly contentType: string; readonly body: Uint8Array } }

const decodeBody = Schema.decodeUnknownOption(Schema.Record(Schema.String, Schema.Unknown))

/** The values that templates can read, without media. */
export const plainScope = (
  { submit }: JobProtocol,
  { body, callbackUrl, taskId, upstreamModel }: SubmitRequest
): TemplateScope => ({
  body: Option.getOrElse(decodeBody(body), () => ({})),
  model: upstreamModel,
  named: formOf(submit, upstreamModel)?.named ?? {},
  task: taskId,
  ...(callbackUrl === undefined ? {} : { callback: callbackUrl })
})

/** The client's request is at fault; nothing was sent. */
const unwritable = (why: string) =>
  new VendorError({
    class: "FATAL_CLIENT",
    message: `The request cannot be written in the vendor's form: ${why}`
  })

const rendered = (template: Parameters<typeof render>[0], scope: TemplateScope) =>
  Effect.mapError(Effect.fromResult(render(template, scope)), unwritable)

type Form = NonNullable<JobProtocol["submit"]["form"]>

const fileAt = (template: unknown): string | undefined =>
  typeof template === "object" && template !== null && "$file" in template
    ? String(template.$file)
    : undefined

/** The medium at a template path: `$.body.image` is the medium at `#/image`. */
const mediumAt = ({ media }: SubmitRequest, path: string): SubmitMedium | undefined => {
  const pointer = pointerOf(keysOf(path).slice(1))
  return media.find((it) => it.pointer === pointer)
}

const anyPicture: ImageRules = {
  kind: "image",
  formats: ["JPEG", "PNG", "BMP", "WEBP"],
  bytesMax: Infinity,
  sideMin: 1,
  pngTransparency: "allowed"
}

/** The files of a form, by part, and the pixels of those that are pictures, by field. */
const filesOf = Effect.fnUntraced(function* (form: Form, request: SubmitRequest) {
  const files = new Map<string, FormFile>()
  const pictures: Record<string, ImageInfo> = {}
  for (const [part, template] of Object.entries(form)) {
    const path = fileAt(template)
    const medium = path === undefined ? undefined : mediumAt(request, path)
    if (path === undefined || medium === undefined) continue
    const bytes = yield* medium.bytes
    const { mime } = medium
    files.set(part, { name: `file.${mime.split("/")[1] ?? "bin"}`, mime, bytes })
    const pixels = yield* Effect.option(inspectImage(bytes, anyPicture))
    if (Option.isSome(pixels)) pictures[String(keysOf(path).at(-1))] = pixels.value
  }
  return { files, pictures }
})

const partsOf = Effect.fnUntraced(function* (
  form: Form,
  scope: TemplateScope,
  request: SubmitRequest
) {
  const { files, pictures } = yield* filesOf(form, request)
  const texts = Object.entries(form).filter(([, template]) => fileAt(template) === undefined)
  const template = Object.fromEntries(texts)
  const values = new Map(Object.entries(Object(yield* rendered(template, { ...scope, pictures }))))
  const fields = Object.keys(form).flatMap((name): ReadonlyArray<[string, string | FormFile]> => {
    const file = files.get(name)
    if (file !== undefined) return [[name, file]]
    const value = values.get(name)
    if (value === undefined || value === null) return []
    return [[name, typeof value === "object" ? JSON.stringify(value) : String(value)]]
  })
  return { raw: yield* multipart(fields) }
})

/** The body of a submit, from the templates of the model or else of its vendor. */
export const contentOf = Effect.fnUntraced(function* (
  protocol: JobProtocol,
  request: SubmitRequest,
  inline: MediumText
): Effect.fn.Return<SubmitContent, VendorError> {
  const own = request.described?.submit
  const { form, json } = own?.json === undefined && own?.form === undefined ? protocol.submit : own
  const scope = plainScope(protocol, request)
  if (form !== undefined) return yield* partsOf(form, scope, request)
  const body = yield* flatInput(request, inline)
  return { json: (yield* rendered(json ?? {}, { ...scope, body })) ?? {} }
})

/** The value of a request at a path, or computed. */
export const sentIn = (sent: string | { readonly $cel: string }, scope: TemplateScope): unknown =>
  typeof sent === "string" ? first(sent, scope) : Result.getOrUndefined(render(sent, scope))

/**
 * Whether a value that the vendor shows equals the one that was sent; `undefined` if it shows none, or none was sent.
 */
export const isShown = (shown: unknown, sent: unknown): boolean | undefined =>
  shown === undefined || shown === null || sent === undefined
    ? undefined
    : JSON.stringify(shown) === JSON.stringify(sent) || String(shown) === String(sent)
