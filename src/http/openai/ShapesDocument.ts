import { jsonContent, problems, refTo, everyResponse } from "../openapi/OpenApiParts.ts"
import type { Json } from "../openapi/OpenApiParts.ts"

/** The paths in OpenAI's shape that are served by tasks. docs/reference/shapes.md */

const text = { type: "string" }
const strings = (...values: ReadonlyArray<string>) => ({ type: "string", enum: values })

const taskHeaders = {
  ...everyResponse,
  "X-Service-Cost": refTo("headers", "Cost"),
  "X-Service-Balance": refTo("headers", "Balance"),
  "X-Service-Budget-Remaining": refTo("headers", "BudgetRemaining"),
  "Idempotency-Replayed": refTo("headers", "IdempotencyReplayed")
}

const imageFields = {
  model: { ...text, description: "A model of the catalog, or `vendor/model`" },
  prompt: text,
  n: { type: "integer", minimum: 1, default: 1 },
  size: { ...text, description: "`1024x1024`; `auto`: the model's default" },
  response_format: { ...strings("url", "b64_json"), description: "Absent: both" },
  output_format: strings("png"),
  metadata: { type: "object", additionalProperties: text }
}

const required = ["model", "prompt"]
const description = "Fields of the model may stand beside these"

const file = { type: "string", contentMediaType: "application/octet-stream" }

const images = (example: Json): Json => ({
  description: "The images, when the task has ended in time",
  headers: taskHeaders,
  ...jsonContent(
    {
      type: "object",
      required: ["created", "data"],
      properties: {
        created: { type: "integer" },
        output_format: text,
        data: {
          type: "array",
          items: { type: "object", properties: { url: text, b64_json: text } }
        }
      }
    },
    example
  )
})

const create = (operationId: string, summary: string, content: Json): Json => ({
  post: {
    tags: ["Aliases"],
    security: [{ bearer: [] }],
    operationId,
    summary,
    description:
      "As OpenAI has it, by any image model of the catalog. Behind it is a task: problems with the codes 2017 to 2019 name it",
    parameters: ["IdempotencyKey", "PreferAsync", "MaxCost"].map((name) =>
      refTo("parameters", name)
    ),
    requestBody: { required: true, content },
    responses: {
      200: images({
        created: 1_767_225_600,
        data: [{ url: "https://example.com/artifacts/art_0" }]
      }),
      202: {
        description: "With `Prefer: respond-async`: the task was accepted",
        headers: taskHeaders,
        ...jsonContent({
          anyOf: ["CreatedTask", "CreatedEdit"].map((name) => refTo("schemas", name))
        })
      },
      ...problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 424, 429, 431, 500, 503)
    }
  }
})

const example = { model: "text-to-image-max", prompt: "A lighthouse at dawn" }

const nullable = (type: string) => ({ type: [type, "null"] })

const videoSchema = {
  type: "object",
  required: ["id", "object", "model", "status", "progress", "created_at", "seconds"],
  properties: {
    id: { type: "string", format: "uuid" },
    object: strings("video"),
    model: text,
    status: strings("queued", "in_progress", "completed", "failed"),
    progress: { type: "integer" },
    prompt: nullable("string"),
    seconds: text,
    size: nullable("string"),
    created_at: { type: "integer" },
    completed_at: nullable("integer"),
    expires_at: nullable("integer"),
    remixed_from_video_id: { type: "null" },
    error: { type: ["object", "null"], properties: { code: text, message: text } },
    metadata: { type: "object", additionalProperties: text }
  }
}

const videoFields = {
  model: imageFields.model,
  prompt: text,
  seconds: { ...text, description: "`duration` of the model" },
  size: { ...text, description: "`1280x720`" },
  metadata: imageFields.metadata
}

const videoBody = (reference: Json): Json => ({
  schema: {
    type: "object",
    required,
    properties: { ...videoFields, input_reference: reference },
    additionalProperties: true,
    description
  }
})

const videoOperation = (operationId: string, summary: string, more: Json): Json => ({
  tags: ["Aliases"],
  security: [{ bearer: [] }],
  operationId,
  summary,
  ...more
})

const theVideo = {
  description: "The video",
  headers: taskHeaders,
  ...jsonContent(videoSchema)
}

const query = (name: string, schema: Json): Json => ({
  name,
  in: "query",
  required: false,
  schema
})

const medium = { content: { "video/mp4": { schema: { type: "string", format: "binary" } } } }
const reads = [401, 403, 404, 405, 429, 500, 503]

const videoPaths: Json = {
  "/v1/videos": {
    post: videoOperation("createVideo", "Make a video", {
      parameters: ["IdempotencyKey", "MaxCost"].map((name) => refTo("parameters", name)),
      requestBody: {
        required: true,
        content: {
          "application/json": {
            ...videoBody({ anyOf: [text, { type: "object", properties: { image_url: text } }] }),
            example: { model: "text-to-video-spark", prompt: "A lighthouse at dawn" }
          },
          "multipart/form-data": videoBody(file)
        }
      },
      responses: {
        200: theVideo,
        ...problems(400, 401, 402, 403, 404, 405, 408, 413, 415, 422, 429, 431, 500, 503)
      }
    }),
    get: videoOperation("listVideos", "List videos", {
      parameters: [
        query("after", { type: "string", format: "uuid" }),
        query("limit", { type: "integer", minimum: 1, maximum: 100, default: 20 }),
        query("order", strings("asc", "desc"))
      ],
      responses: {
        200: {
          description: "A page",
          headers: everyResponse,
          ...jsonContent({
            type: "object",
            required: ["object", "data", "has_more"],
            properties: {
              object: strings("list"),
              data: { type: "array", items: videoSchema },
              first_id: nullable("string"),
              last_id: nullable("string"),
              has_more: { type: "boolean" }
            }
          })
        },
        ...problems(400, ...reads)
      }
    })
  },
  "/v1/videos/{video_id}": {
    parameters: [refTo("parameters", "VideoId")],
    get: videoOperation("getVideo", "Get a video", {
      responses: { 200: theVideo, ...problems(...reads) }
    }),
    delete: videoOperation("deleteVideo", "Delete a video, which is cancelled if it runs", {
      responses: {
        200: {
          description: "It was deleted",
          headers: everyResponse,
          ...jsonContent({
            type: "object",
            required: ["id", "object", "deleted"],
            properties: {
              id: text,
              object: strings("video.deleted"),
              deleted: { type: "boolean" }
            }
          })
        },
        ...problems(...reads)
      }
    })
  },
  "/v1/videos/{video_id}/remix": {
    parameters: [refTo("parameters", "VideoId")],
    post: videoOperation("remixVideo", "Remix a video, where its model can: none can now", {
      responses: { 200: theVideo, ...problems(400, ...reads) }
    })
  },
  "/v1/videos/{video_id}/content": {
    parameters: [refTo("parameters", "VideoId")],
    get: videoOperation("getVideoContent", "Download a video, whole or a range", {
      responses: {
        200: { description: "The video", headers: everyResponse, ...medium },
        206: { description: "A part of it", headers: everyResponse, ...medium },
        ...problems(400, 401, 403, 404, 405, 416, 429, 500, 503)
      }
    })
  }
}

export const shapePaths: Json = {
  ...videoPaths,
  "/v1/images/generations": create("createImage", "Make images of words", {
    "application/json": {
      schema: {
        type: "object",
        required,
        properties: imageFields,
        additionalProperties: true,
        description
      },
      example
    }
  }),
  "/v1/images/edits": create("createImageEdit", "Make images of pictures", {
    "multipart/form-data": {
      schema: {
        type: "object",
        required,
        properties: { ...imageFields, image: { type: "array", items: file } },
        additionalProperties: true,
        description
      }
    },
    "application/json": {
      schema: {
        type: "object",
        required,
        properties: {
          ...imageFields,
          images: {
            type: "array",
            items: { anyOf: [text, { type: "object", properties: { image_url: text } }] }
          }
        },
        additionalProperties: true,
        description
      }
    }
  })
}

export const shapeParameters: Json = {
  VideoId: {
    name: "video_id",
    in: "path",
    required: true,
    description: "The id that create returned",
    schema: { type: "string", format: "uuid" }
  },
  PreferAsync: {
    name: "Prefer",
    in: "header",
    required: false,
    description: "Waits this many seconds, or not at all, for the end of the task",
    schema: { type: "string", pattern: String.raw`^(wait=\d{1,2}|respond-async)` }
  }
}
