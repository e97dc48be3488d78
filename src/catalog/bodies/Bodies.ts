import { Schema } from "effect"
import type { JsonSchema } from "effect"
import { ImageEdit } from "./ImageEdit.ts"
import { ImageEditMax } from "./ImageEditMax.ts"
import { ImageEditPro } from "./ImageEditPro.ts"
import { ImageToVideoSpark } from "./ImageToVideoSpark.ts"
import { KeyframeToVideoPlus } from "./KeyframeToVideoPlus.ts"
import { TextToImageMax } from "./TextToImageMax.ts"
import { TextToImagePreview } from "./TextToImagePreview.ts"
import { TextToVideoSpark } from "./TextToVideoSpark.ts"
import { VideoEditPlus } from "./VideoEditPlus.ts"

/** Each label names a body; models with the same body share the label. docs/reference/models.md#labels */
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

/** A stored body: that of a label, or the request for a response (`ResponseBody.ts`). */
export type BodyLabel = Label | "response"

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
export type Body = (typeof bodies)[Label]["Type"]

const makeJsonSchema = (label: Label): JsonSchema.JsonSchema => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(bodies[label], {
    onExcessProperty: "error",
    generateDescriptions: false
  })
  const [definition] = Object.values(definitions)
  return definition ?? schema
}

const jsonSchemas = new Map(Label.literals.map((label) => [label, makeJsonSchema(label)]))

/** JSON Schema (draft 2020-12) of a body, for OpenAPI and `GET /manage/v1/models`. Do not mutate it. */
export const jsonSchemaOf = (label: Label): JsonSchema.JsonSchema => jsonSchemas.get(label) ?? {}

const Shape = Schema.Struct({
  properties: Schema.Record(Schema.String, Schema.Unknown),
  required: Schema.Array(Schema.String)
})
const decodeShape = Schema.decodeUnknownSync(Shape)

interface FieldNames {
  readonly all: ReadonlySet<string>
  readonly required: ReadonlySet<string>
}

const byLabel = new Map<string, FieldNames>(
  Label.literals.map((label) => {
    const { properties, required } = decodeShape(jsonSchemaOf(label))
    return [label, { all: new Set(Object.keys(properties)), required: new Set(required) }]
  })
)

/** The names of a body's fields. */
export const fieldNames = (label: string): FieldNames =>
  byLabel.get(label) ?? { all: new Set(), required: new Set() }
