import type { VendorErrorClass } from "../../vendors/VendorError.ts"
import { batches, isBatchCreate, submitBatch } from "./OpenAiBatchProtocol.ts"
import { failure, fieldsOf, invalid } from "./OpenAiFailure.ts"
import { isBackground, responses, submitResponse } from "./OpenAiResponseProtocol.ts"
import { submitVideo, videoFailures, videos } from "./OpenAiVideoProtocol.ts"
import { filesOf } from "./Protocol.ts"
import type { Protocol, Reply, Vendor } from "./Protocol.ts"
import type { VendorRequest } from "./VendorRequest.ts"

const classicSizes = new Set(["1024x1024", "1536x1024", "1024x1536", "auto"])

/** Whether the size is valid. Newer models accept any size within these bounds. */
const isSize = (model: string, size: string): boolean => {
  if (classicSizes.has(size)) return true
  const [width = 0, height = 0] = (/^\d+x\d+$/u.exec(size)?.[0] ?? "").split("x").map(Number)
  return (
    model.startsWith("gpt-image-2") &&
    width % 16 === 0 &&
    height % 16 === 0 &&
    Math.max(width, height) <= Math.min(3840, 3 * Math.min(width, height))
  )
}

const imageFields =
  /^(?:model|prompt|n|size|quality|background|moderation|user|output_format|output_compression|input_fidelity|safety_identifier|stream|image(?:\[\])?|mask)$/u

const faultOfImages = (
  request: VendorRequest,
  fields: ReadonlyMap<string, string>
): Reply | undefined => {
  const isEdit = request.path.endsWith("/edits")
  const type = request.headers["content-type"] ?? ""
  if (isEdit !== type.startsWith("multipart/form-data")) return invalid("Unsupported content type")
  const unknown = [...fields.keys()].find((it) => !imageFields.test(it))
  if (unknown !== undefined) return invalid(`Unknown parameter: '${unknown}'.`)
  for (const name of ["model", "prompt"]) {
    if (!fields.has(name)) return invalid(`Missing required parameter: '${name}'.`)
  }
  const { form } = request
  const pictures = [...(form.get("image") ?? []), ...(form.get("image[]") ?? [])]
  if (isEdit && pictures.length === 0) return invalid("Missing required parameter: 'image'.")
  if (pictures.some(({ fileName }) => fileName === undefined)) return invalid("Invalid image")
  if (!isSize(fields.get("model") ?? "", fields.get("size") ?? "auto")) return invalid("size")
  return /^(?:[1-9]|10)$/u.test(fields.get("n") ?? "1") ? undefined : invalid("n")
}

const rejected = "Rejected by the safety system."

const refusal = (kind: VendorErrorClass, message?: string): Reply | undefined => {
  switch (kind) {
    case "RATE_LIMITED":
      return failure(429, "requests", "rate_limit_exceeded", message ?? "Rate limit reached.")
    case "RETRYABLE":
      return failure(503, "server_error", "server_error", message ?? "The engine is overloaded.")
    case "OPERATOR":
      return failure(
        429,
        "insufficient_quota",
        "insufficient_quota",
        message ?? "You exceeded your quota."
      )
    case "GONE":
      return failure(
        404,
        "invalid_request_error",
        "model_not_found",
        message ?? "The model does not exist or you do not have access to it."
      )
    case "CONTENT":
      return failure(400, "image_generation_user_error", "moderation_blocked", message ?? rejected)
    case "FATAL_CLIENT":
      return invalid(message ?? "Invalid size")
    case "MEDIA":
      return invalid(message ?? "Invalid image")
    default:
      return undefined
  }
}

const images = async (request: VendorRequest, vendor: Vendor): Promise<Reply> => {
  const fields = fieldsOf(request)
  const refused = faultOfImages(request, fields)
  if (refused !== undefined) return refused
  const job = vendor.buy(request, { prefix: "img_", count: Number(fields.get("n") ?? 1) })
  await vendor.ended(job)
  const ending = vendor.endingOf(job, "image")
  if (ending._tag === "Failed") {
    const { kind, message = "The server had an error" } = ending
    const known = kind === "FAILED" ? undefined : refusal(kind, ending.message)
    return known ?? failure(500, "server_error", "server_error", message)
  }
  const data = filesOf(ending).map(({ bytes }) => ({
    b64_json: Buffer.from(bytes).toString("base64")
  }))
  const size = fields.get("size") ?? "auto"
  return {
    status: 200,
    json: {
      created: Math.floor(job.createdAt / 1000),
      background: "opaque",
      data,
      output_format: fields.get("output_format") ?? "png",
      quality: fields.get("quality") ?? "medium",
      size: size === "auto" ? "1024x1024" : size,
      usage: {
        input_tokens: 20,
        input_tokens_details: { text_tokens: 20, image_tokens: 0 },
        output_tokens: 1000,
        total_tokens: 1020
      }
    }
  }
}

const isSubmit = (request: VendorRequest) =>
  isBackground(request) ||
  isBatchCreate(request) ||
  (request.method === "POST" &&
    /^\/v1\/(?:videos|images\/(?:generations|edits))$/u.test(request.path))

/** Images and videos. docs/reference/vendors.md#openai-images, docs/reference/vendors.md#openai-videos */
export const openai: Protocol = {
  key: "sk-openai-test-0001",
  isSubmit,
  modelOf: (request) => fieldsOf(request).get("model") ?? "sora-2",
  stranger: ({ headers }, key) =>
    headers.authorization === `Bearer ${key}`
      ? undefined
      : failure(401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided"),
  refusal,
  jobFailures: new Set([...videoFailures.keys(), "LOST"]),
  respond: (request, vendor) => {
    if (isBackground(request)) return submitResponse(request, vendor)
    if (isBatchCreate(request)) return submitBatch(request, vendor)
    if (!isSubmit(request)) {
      return responses(request, vendor) ?? videos(request, vendor) ?? batches(request, vendor)
    }
    return request.path === "/v1/videos" ? submitVideo(request, vendor) : images(request, vendor)
  }
}
