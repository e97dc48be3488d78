import { Effect, Schema } from "effect"
import type { JsonSchema } from "effect"
import type { DescribedBody } from "../jobs/DescribedBody.ts"
import type { Described } from "../jobs/JobModel.ts"
import { ImageEdit } from "./ImageEdit.ts"
import { ImageEditMax } from "./ImageEditMax.ts"
import { ImageEditPro } from "./ImageEditPro.ts"
import { ImageToVideoSpark } from "./ImageToVideoSpark.ts"
import { KeyframeToVideoPlus } from "./KeyframeToVideoPlus.ts"
import { TextToImageMax } from "./TextToImageMax.ts"
import { TextToImagePreview } from "./TextToImagePreview.ts"
import { TextToVideoSpark } from "./TextToVideoSpark.ts"
import { VideoEditPlus } from "./VideoEditPlus.ts"

/** Each label identifies a body. Models with the same body share a label. docs/reference/models.md#labels */
export const Label = Schema.Literals([
  "text-to-video-spark",
  "keyframe-to-video-plus",
  "image-edit",
  "text-to-image-max",
  "image-edit-pro",
  "image-edit-max",
  "text-to-image-preview",
  "image-to-video-spark",
  "video-edit-plus"
])
export type Label = typeof Label.Type

/**
 * What a stored body is: the body of a label or of a described model, the request for a response (`ResponseBody.ts`),
 * or a batch (`BatchBody.ts`).
 */
export type BodyLabel = Label | `${string}/${string}` | "response" | "batch"

/** What determines a body: a label, or an entry that may describe its body. */
export type BodySource = string | { readonly label: string; readonly described?: Described }

/** The label of an entry and, for a described model, its description. */
export const sourceOf = (
  source: BodySource
): { readonly label: string; readonly described?: Described } =>
  typeof source === "string" ? { label: source } : source

export const bodies = {
  "text-to-video-spark": TextToVideoSpark,
  "keyframe-to-video-plus": KeyframeToVideoPlus,
  "image-edit": ImageEdit,
  "text-to-image-max": TextToImageMax,
  "image-edit-pro": ImageEditPro,
  "image-edit-max": ImageEditMax,
  "text-to-image-preview": TextToImagePreview,
  "image-to-video-spark": ImageToVideoSpark,
  "video-edit-plus": VideoEditPlus
} satisfies Record<Label, Schema.Top>

/** A decoded body, with defaults. */
export type Body = (typeof bodies)[Label]["Type"] | DescribedBody

const makeJsonSchema = (label: Label): JsonSchema.JsonSchema => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(bodies[label], {
    onExcessProperty: "error",
    generateDescriptions: false
  })
  const [definition] = Object.values(definitions)
  return definition ?? schema
}

const jsonSchemas = new Map<string, JsonSchema.JsonSchema>(
  Label.literals.map((label) => [label, makeJsonSchema(label)])
)

/** JSON Schema (draft 2020-12) of a body, for OpenAPI and `GET /manage/v1/models`. Do not mutate it. */
export const jsonSchemaOf = (source: BodySource): JsonSchema.JsonSchema => {
  const { described, label } = sourceOf(source)
  return described?.body ?? jsonSchemas.get(label) ?? noSchema
}

const noSchema = {}

const Shape = Schema.Struct({
  properties: Schema.Record(Schema.String, Schema.Unknown),
  required: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed([])))
})
const decodeShape = Schema.decodeUnknownSync(Shape)

interface FieldNames {
  readonly all: ReadonlySet<string>
  readonly required: ReadonlySet<string>
}

const bySchema = new WeakMap<JsonSchema.JsonSchema, FieldNames>()

/** The names of a body's fields. */
export const fieldNames = (source: BodySource): FieldNames => {
  const schema = jsonSchemaOf(source)
  const known = bySchema.get(schema)
  if (known !== undefined) return known
  const { properties, required } = decodeShape({ properties: {}, ...schema })
  const names = { all: new Set(Object.keys(properties)), required: new Set(required) }
  bySchema.set(schema, names)
  return names
}
