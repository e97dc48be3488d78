import { at } from "../../domain/json/Json.ts"
import { pixel } from "../../vendors/mock/Pixel.ts"
import { filesOf } from "./Protocol.ts"
import type { Ending, Protocol, Reply, Vendor } from "./Protocol.ts"
import { listAt, textAt } from "./VendorRequest.ts"
import type { VendorRequest } from "./VendorRequest.ts"

const failure = (code: number, status: string, message: string): Reply => ({
  status: code,
  json: { error: { code, message, status, details: [] } }
})

const invalid = (message: string) => failure(400, "INVALID_ARGUMENT", message)

const path = /^\/v1(?:beta)?\/models\/([\w.-]+):(generateContent|streamGenerateContent)$/u

const image = (mimeType: string, bytes: Uint8Array, extra: object = {}) => ({
  inlineData: { mimeType, data: Buffer.from(bytes).toString("base64") },
  ...extra
})

const modalitiesOf = ({ json }: VendorRequest) =>
  listAt(json, "generationConfig", "responseModalities")

/** Whether an image is requested. Other requests are calls of language models. */
const isPicture = (request: VendorRequest): boolean =>
  /image/u.test(path.exec(request.path)?.[1] ?? "") ||
  modalitiesOf(request)?.includes("IMAGE") === true

const fault = (request: VendorRequest): Reply | undefined => {
  const [content] = listAt(request.json, "contents") ?? []
  const parts = listAt(content, "parts")
  if (parts?.some((it) => textAt(it, "text") !== undefined) !== true) {
    return invalid("contents is not specified")
  }
  const isBroken = (part: unknown) =>
    at(part, "inlineData") !== undefined &&
    !/^[\w+/]+=*$/u.test(textAt(part, "inlineData", "data") ?? "")
  if (parts.some(isBroken)) {
    return invalid("Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES)")
  }
  if (modalitiesOf(request)?.includes("IMAGE") === false) return invalid("response modalities")
  const size = textAt(request.json, "generationConfig", "imageConfig", "imageSize") ?? "1K"
  return /^[124]K$/u.test(size) ? undefined : invalid("image_size")
}

const usageMetadata = {
  promptTokenCount: 20,
  candidatesTokenCount: 1120,
  thoughtsTokenCount: 200,
  totalTokenCount: 1340,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }],
  candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1120 }]
}

/** The response. Failures are reported in a 200. */
const generated = (ending: Ending, modelVersion: string): object => {
  const common = { modelVersion, responseId: "resp-1" }
  const answer = (candidate: object) => ({
    candidates: [{ index: 0, ...candidate }],
    usageMetadata,
    ...common
  })
  if (ending._tag === "Failed" && ending.kind === "CONTENT") {
    const { message } = ending
    return {
      promptFeedback: {
        blockReason: "PROHIBITED_CONTENT",
        ...(message === undefined ? {} : { blockReasonMessage: message })
      },
      usageMetadata: { promptTokenCount: 20, totalTokenCount: 20 },
      ...common
    }
  }
  if (ending._tag === "Failed") {
    const { message } = ending
    return answer({
      finishReason: "NO_IMAGE",
      ...(message === undefined ? {} : { finishMessage: message })
    })
  }
  const thought = image("image/png", pixel, { thought: true })
  const made = filesOf(ending).map(({ bytes, mime }) =>
    image(mime, bytes, { thoughtSignature: "s" })
  )
  return answer({
    content: {
      role: "model",
      parts:
        made.length === 0 ? [{ text: "I cannot" }, thought] : [thought, { text: "Here" }, ...made]
    },
    finishReason: "STOP"
  })
}

const generate = async (request: VendorRequest, vendor: Vendor): Promise<Reply> => {
  const refused = fault(request)
  if (refused !== undefined) return refused
  const [, model = "", verb] = path.exec(request.path) ?? []
  const job = vendor.buy(request, { prefix: "g" })
  await vendor.ended(job)
  const json = generated(vendor.endingOf(job, "image"), model)
  if (verb === "generateContent") return { status: 200, json }
  return {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    bytes: Buffer.from(`data: ${JSON.stringify(json)}\r\n\r\n`)
  }
}

const isSubmit = (request: VendorRequest) =>
  request.method === "POST" && path.test(request.path) && isPicture(request)

/** `generateContent` for images. docs/reference/vendors.md#gemini-images */
export const gemini: Protocol = {
  key: "AIzaTestKeyOfTheGateway0001",
  isSubmit,
  modelOf: (request) => /\/models\/([^/:]+)/u.exec(request.path)?.[1] ?? "",
  stranger: ({ headers }, key) =>
    headers["x-goog-api-key"] === key
      ? undefined
      : invalid("API key not valid. Please pass a valid API key."),
  refusal: (kind, message) => {
    switch (kind) {
      case "RATE_LIMITED":
        return failure(429, "RESOURCE_EXHAUSTED", message ?? "You exceeded your current quota.")
      case "RETRYABLE":
        return failure(503, "UNAVAILABLE", message ?? "The model is overloaded.")
      case "OPERATOR":
        return failure(403, "PERMISSION_DENIED", message ?? "Your project has been denied access.")
      case "GONE":
        return failure(
          404,
          "NOT_FOUND",
          `models/this is not found for API version v1${message === undefined ? "" : `: ${message}`}`
        )
      case "CONTENT": {
        const reason = message === undefined ? {} : { blockReasonMessage: message }
        return { status: 200, json: { promptFeedback: { blockReason: "SAFETY", ...reason } } }
      }
      case "FATAL_CLIENT":
        return invalid(message ?? "aspect_ratio is not supported")
      case "MEDIA":
        return invalid(message ?? "Unable to process input image.")
      default:
        return undefined
    }
  },
  jobFailures: new Set(["CONTENT", "FAILED"]),
  respond: (request, vendor) => (isSubmit(request) ? generate(request, vendor) : undefined)
}
