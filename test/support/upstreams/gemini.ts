import { pixel } from "./Upstream.ts"
import type { Protocol, Reply, Seen, Upstream } from "./Upstream.ts"

const failure = (code: number, status: string, message: string, details: Array<object> = []) => ({
  status: code,
  json: { error: { code, message, status, details } }
})

const path = /^\/v1(?:beta)?\/models\/([\w.-]+):(generateContent|streamGenerateContent)$/u

const image = (extra: object = {}) => ({
  inlineData: { mimeType: "image/png", data: pixel.toString("base64") },
  ...extra
})

const fault = ({ json }: Seen): Reply | undefined => {
  const invalid = (what: string) => failure(400, "INVALID_ARGUMENT", what)
  const parts = json?.contents?.[0]?.parts
  if (!Array.isArray(parts) || !parts.some((it) => typeof it.text === "string")) {
    return invalid("contents is not specified")
  }
  if (parts.some((it) => it.inlineData !== undefined && !/^[\w+/]+=*$/u.test(it.inlineData.data))) {
    return invalid("Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES)")
  }
  const { imageConfig, responseModalities = ["TEXT", "IMAGE"] } = json.generationConfig ?? {}
  if (!responseModalities.includes("IMAGE")) return invalid("response modalities")
  return /^[124]K$/u.test(imageConfig?.imageSize ?? "1K") ? undefined : invalid("image_size")
}

const usageMetadata = {
  promptTokenCount: 20,
  candidatesTokenCount: 1120,
  thoughtsTokenCount: 200,
  totalTokenCount: 1340,
  promptTokensDetails: [{ modality: "TEXT", tokenCount: 20 }],
  candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1120 }]
}

const generated = (upstream: Upstream, modelVersion: string): Reply => {
  const answer = (candidate: object) => ({
    status: 200,
    json: {
      candidates: [{ index: 0, ...candidate }],
      usageMetadata,
      modelVersion,
      responseId: "resp-1"
    }
  })
  switch (upstream.ending) {
    case "content":
      return {
        status: 200,
        json: {
          promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
          usageMetadata: { promptTokenCount: 20, totalTokenCount: 20 },
          modelVersion,
          responseId: "resp-1"
        }
      }
    case "failed":
      return answer({ finishReason: "NO_IMAGE" })
    case "nothing":
      return answer({
        content: { role: "model", parts: [{ text: "I cannot" }, image({ thought: true })] },
        finishReason: "STOP"
      })
    default:
      return answer({
        content: {
          role: "model",
          parts: [image({ thought: true }), { text: "Here" }, image({ thoughtSignature: "s" })]
        },
        finishReason: "STOP"
      })
  }
}

/** `generateContent`: docs/reference/vendors.md#gemini-images */
export const gemini: Protocol = {
  key: "AIzaTestKeyOfTheGateway0001",
  refusals: {
    "429": failure(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota."),
    unavailable: failure(503, "UNAVAILABLE", "The model is overloaded."),
    operator: failure(403, "PERMISSION_DENIED", "Your project has been denied access."),
    content: { status: 200, json: { promptFeedback: { blockReason: "SAFETY" } } },
    client: failure(400, "INVALID_ARGUMENT", "aspect_ratio is not supported"),
    media: failure(400, "INVALID_ARGUMENT", "Unable to process input image.")
  },
  isSubmit: (seen) => seen.method === "POST" && path.test(seen.path),
  respond: (seen, upstream) => {
    const [, model, verb] = path.exec(seen.path) ?? []
    if (model === undefined) return undefined
    if (seen.headers["x-goog-api-key"] !== upstream.key) {
      return failure(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.")
    }
    const refused = fault(seen)
    if (refused !== undefined) return refused
    upstream.buy(seen, "g")
    const reply = generated(upstream, model)
    if (verb === "generateContent") return reply
    return {
      status: 200,
      headers: { "content-type": "text/event-stream" },
      bytes: Buffer.from(`data: ${JSON.stringify(reply.json)}\r\n\r\n`)
    }
  }
}
