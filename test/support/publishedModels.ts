/**
 * Schemas in the form in which fal and Replicate publish them: fal's OpenAPI 3.0 documents of the queue
 * (`/api/openapi/queue/openapi.json?endpoint_id=…`), and Replicate's `GET /v1/models/{owner}/{name}` with the schema
 * that Cog writes. According to their documentation as of 2026-11-26; the models are invented.
 */

const json = (schema: object) => ({ content: { "application/json": { schema } } })
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** A document of fal's queue for one endpoint. */
export const falDocument = (
  id: string,
  category: string,
  input: object,
  output: object,
  more: object = {}
) => ({
  openapi: "3.0.4",
  info: {
    title: `Queue OpenAPI for ${id}`,
    version: "1.0.0",
    description: `The OpenAPI schema for the ${id} queue.`,
    "x-fal-metadata": {
      endpointId: id,
      category,
      playgroundUrl: `https://fal.ai/models/${id}`,
      documentationUrl: `https://fal.ai/models/${id}/api`
    }
  },
  components: {
    securitySchemes: {
      apiKeyAuth: { type: "apiKey", in: "header", name: "Authorization", description: "Fal Key" }
    },
    schemas: {
      QueueStatus: {
        type: "object",
        properties: {
          status: { type: "string", enum: ["IN_QUEUE", "IN_PROGRESS", "COMPLETED"] },
          request_id: { type: "string", description: "The request id." },
          response_url: { type: "string", description: "The response url." }
        },
        required: ["status", "request_id"]
      },
      ModelInput: { title: "ModelInput", type: "object", ...input },
      ModelOutput: { title: "ModelOutput", type: "object", ...output },
      Image: {
        title: "Image",
        type: "object",
        description: "Represents an image file.",
        "x-fal-order-properties": ["url", "content_type", "width", "height"],
        properties: {
          url: { title: "Url", type: "string", description: "The URL of the file." },
          content_type: { anyOf: [{ type: "string" }, { type: "null" }], title: "Content Type" },
          width: { anyOf: [{ type: "integer" }, { type: "null" }], title: "Width" },
          height: { anyOf: [{ type: "integer" }, { type: "null" }], title: "Height" }
        },
        required: ["url"]
      },
      File: {
        title: "File",
        type: "object",
        properties: {
          url: { title: "Url", type: "string" },
          content_type: { title: "Content Type", type: "string" }
        },
        required: ["url"]
      },
      ImageSize: {
        title: "ImageSize",
        type: "object",
        properties: {
          width: {
            title: "Width",
            type: "integer",
            maximum: 14142,
            exclusiveMinimum: 0,
            default: 512
          },
          height: {
            title: "Height",
            type: "integer",
            maximum: 14142,
            exclusiveMinimum: 0,
            default: 512
          }
        }
      },
      ...more
    }
  },
  paths: {
    [`/${id}/requests/{request_id}/status`]: {
      get: { responses: { "200": { description: "The status.", ...json(ref("QueueStatus")) } } }
    },
    [`/${id}/requests/{request_id}/cancel`]: { put: { responses: {} } },
    [`/${id}`]: {
      post: {
        requestBody: { required: true, ...json(ref("ModelInput")) },
        responses: { "200": { description: "The status.", ...json(ref("QueueStatus")) } }
      }
    },
    [`/${id}/requests/{request_id}`]: {
      get: { responses: { "200": { description: "The result.", ...json(ref("ModelOutput")) } } }
    }
  },
  servers: [{ url: "https://queue.fal.run" }],
  security: [{ apiKeyAuth: [] }]
})

/** A model that edits images. */
export const falImages = falDocument(
  "acme-ai/brush/edit",
  "image-to-image",
  {
    "x-fal-order-properties": ["prompt", "image_urls", "num_images", "image_size", "seed"],
    properties: {
      seed: { anyOf: [{ type: "integer" }, { type: "null" }], title: "Seed" },
      prompt: {
        title: "Prompt",
        type: "string",
        minLength: 3,
        maxLength: 50_000,
        description: "What the picture shows.",
        examples: ["a lighthouse"]
      },
      image_urls: {
        title: "Image URLs",
        type: "array",
        items: { type: "string" },
        maxItems: 4,
        description: "URLs of the pictures."
      },
      num_images: { title: "Number", type: "integer", minimum: 1, maximum: 4, default: 1 },
      image_size: {
        anyOf: [ref("ImageSize"), { type: "string", enum: ["square_hd", "landscape_4_3"] }],
        title: "Image Size",
        default: "landscape_4_3"
      },
      sync_mode: { title: "Sync Mode", type: "boolean", default: false },
      webhook: { type: "string" }
    },
    required: ["prompt", "image_urls"]
  },
  {
    "x-fal-order-properties": ["images", "description"],
    properties: {
      images: { title: "Images", type: "array", items: ref("Image") },
      description: { title: "Description", type: "string" }
    },
    required: ["images", "description"]
  }
)

/** An image-to-video model. Only the position of its file in the output shows that it is a video. */
export const falVideo = falDocument(
  "acme-ai/film",
  "image-to-video",
  {
    properties: {
      prompt: { type: "string" },
      image_url: { type: "string", description: "The first frame" },
      tail_image_url: { anyOf: [{ type: "string" }, { type: "null" }] },
      duration: { type: "string", enum: ["5", "10"], default: "5" }
    },
    required: ["prompt", "image_url"]
  },
  { properties: { video: ref("File"), seed: { type: "integer" } }, required: ["video"] }
)

const cog = (input: object, output: object, more: object = {}) => ({
  info: { title: "Cog", version: "0.1.0" },
  openapi: "3.0.2",
  paths: {
    "/predictions": { post: { summary: "Predict", operationId: "predict_predictions_post" } }
  },
  components: {
    schemas: {
      Input: { type: "object", title: "Input", ...input },
      Output: { title: "Output", ...output },
      Status: {
        enum: ["starting", "processing", "succeeded", "canceled", "failed"],
        type: "string"
      },
      ...more
    }
  }
})

export const replicateModelOf = (schema: object, more: object = {}) => ({
  url: "https://replicate.com/acme/model",
  owner: "acme",
  name: "model",
  description: "A model",
  visibility: "public",
  run_count: 12,
  default_example: null,
  latest_version: {
    id: "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa",
    created_at: "2026-01-02T03:04:05.000000Z",
    cog_version: "0.9.0",
    openapi_schema: schema
  },
  ...more
})

/** An official image model: files are strings with the format `uri`, and choices are references. */
export const replicateImages = replicateModelOf(
  cog(
    {
      required: ["prompt"],
      properties: {
        num_outputs: {
          type: "integer",
          "x-order": 2,
          minimum: 1,
          maximum: 4,
          title: "Num Outputs"
        },
        prompt: { type: "string", "x-order": 0, title: "Prompt", description: "What it shows" },
        aspect_ratio: { allOf: [ref("aspect_ratio")], "x-order": 1, default: "1:1" },
        image: { type: "string", format: "uri", "x-order": 3, nullable: true },
        output_format: { allOf: [ref("output_format")], "x-order": 4, default: "webp" }
      }
    },
    { type: "array", items: { type: "string", format: "uri" } },
    {
      aspect_ratio: { enum: ["1:1", "16:9"], type: "string", title: "aspect_ratio" },
      output_format: { enum: ["webp", "png"], type: "string", title: "output_format" }
    }
  ),
  {
    is_official: true,
    default_example: {
      id: "abc",
      input: { prompt: "a lighthouse" },
      output: ["https://replicate.delivery/x/out-0.webp"],
      status: "succeeded"
    }
  }
)

/** A user's model that describes an image. */
export const replicateCaption = replicateModelOf(
  cog(
    {
      required: ["image"],
      properties: {
        image: { type: "string", format: "uri", "x-order": 0, description: "The picture" },
        task: { type: "string", default: "caption", "x-order": 1 }
      }
    },
    { type: "string" }
  ),
  { is_official: false }
)
