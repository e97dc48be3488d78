import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { shapedImagesMax } from "../domain/limits/ShapeLimits.ts"
import { Metadata } from "../domain/task/Metadata.ts"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { CreatedEdit, CreatedTask } from "./GenerationApi.ts"
import { requestHeaders, withHeaders } from "./Headers.ts"
import { problems } from "./Problems.ts"

/** A file of a form. */
export const FormFile = Schema.String.annotate({ contentMediaType: "application/octet-stream" })

export const ModelName = Schema.String.annotate({
  description: "A model of the catalog, or `vendor/model`"
})

const open = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), [Schema.Record(Schema.String, Schema.Unknown)])

/** An image in JSON: a URL, Base64, or OpenAI's object. */
export const Picture = Schema.Union([
  Schema.String,
  open({ image_url: Schema.optionalKey(Schema.String) })
])

export const openBody = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  open(fields).annotate({ description: "Other fields of the model are accepted as well" })

const imageFields = {
  model: ModelName,
  prompt: Schema.String,
  n: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: shapedImagesMax })).annotate({
      default: 1,
      description: "The number of tasks, which are accepted together or not at all"
    })
  ),
  size: Schema.optionalKey(
    Schema.String.annotate({
      description: "`1024x1024`: the nearest of the model's sizes; `auto`: the model's default"
    })
  ),
  response_format: Schema.optionalKey(
    Schema.Literals(["url", "b64_json"]).annotate({ description: "Absent: both" })
  ),
  output_format: Schema.optionalKey(Schema.Literal("png")),
  metadata: Schema.optionalKey(Metadata)
}

/** docs/reference/shapes.md#images */
export const Images = Schema.Struct({
  created: Schema.Int,
  output_format: Schema.optionalKey(Schema.String),
  data: Schema.Array(
    Schema.Struct({
      url: Schema.optionalKey(Schema.String),
      b64_json: Schema.optionalKey(Schema.String)
    })
  )
})

/** Headers of a response that identifies its task. */
export const shapedHeaders = [
  "X-Service-Cost",
  "X-Service-Balance",
  "X-Service-Budget-Remaining",
  "Idempotency-Replayed"
] as const

/** The response to a request for several images with `Prefer: respond-async`. */
export const CreatedTasks = Schema.Struct({
  tasks: Schema.Array(Schema.Union([CreatedTask, CreatedEdit]))
}).annotate({ identifier: "CreatedTasks" })

const imageHeaders = [
  ...shapedHeaders,
  "X-Service-Model",
  "X-Service-Size",
  "X-Service-Ignored"
] as const

const createOf = {
  headers: {
    "Idempotency-Key": requestHeaders["Idempotency-Key"],
    Prefer: Schema.optionalKey(
      Schema.String.annotate({
        description:
          "`wait=30` waits this many seconds for the end of the task, `respond-async` not at all; other preferences are ignored"
      })
    ),
    "X-Service-Max-Cost": requestHeaders["X-Service-Max-Cost"]
  },
  success: [
    withHeaders(Images, imageHeaders),
    withHeaders(
      Schema.Union([CreatedTask, CreatedEdit, CreatedTasks]).pipe(HttpApiSchema.status(202)),
      imageHeaders
    )
  ],
  error: problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 424, 429, 431, 500, 503)
} as const

const wordsOf = (summary: string, example?: unknown) =>
  documented({
    summary,
    description:
      "OpenAI's request, for any image model of the catalog. Each image is a task, which problems with the codes 2017 to 2019 name",
    example,
    responses: {
      200: {
        description: "The images, if the task ended in time",
        example: {
          created: 1_767_225_600,
          data: [{ url: "https://example.com/artifacts/art_0" }]
        }
      },
      202: { description: "With `Prefer: respond-async`: the tasks were accepted" }
    }
  })

export const createImage = HttpApiEndpoint.post("createImage", "/v1/images/generations", {
  ...createOf,
  payload: openBody(imageFields)
}).annotateMerge(
  wordsOf("Create images from text", { model: "text-to-image-max", prompt: "A lighthouse at dawn" })
)

export const createImageEdit = HttpApiEndpoint.post("createImageEdit", "/v1/images/edits", {
  ...createOf,
  payload: [
    openBody({ ...imageFields, image: Schema.optionalKey(Schema.Array(FormFile)) }).pipe(
      HttpApiSchema.asMultipart()
    ),
    openBody({ ...imageFields, images: Schema.optionalKey(Schema.Array(Picture)) })
  ]
}).annotateMerge(wordsOf("Create images from images"))

/** Images in OpenAI's format. docs/reference/shapes.md#images */
export class ImagesApi extends HttpApiGroup.make("images", { topLevel: true })
  .add(createImage, createImageEdit)
  .middleware(InferenceKey) {}
