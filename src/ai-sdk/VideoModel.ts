import type {
  Experimental_VideoModelV4 as VideoModelV4,
  Experimental_VideoModelV4CallOptions as CallOptions,
  SharedV4Warning
} from "@ai-sdk/provider"
import { newIdempotencyKey } from "../client/Keys.ts"
import { encodeBody } from "../client/Media.ts"
import { maxCostHeaders } from "../client/Task.ts"
import type { TaskRef } from "../client/Task.ts"
import { download, responseOf, sent, taskAt } from "./Connection.ts"
import type { Connection } from "./Connection.ts"
import { mediumOf, optionsKey, optionsOf } from "./Options.ts"

/**
 * Generates a video as a task. The AI SDK starts it, then polls it or is notified by the task's webhook. The operation
 * is the task's identity as JSON, so any later process can poll it. Rejects with the client's errors.
 */
export const makeVideoModel = (connection: Connection, modelId: string): VideoModelV4 => {
  // The AI SDK retries a start with the same options object, which must not buy twice
  const keys = new WeakMap<object, string>()
  const keyOf = (options: CallOptions): string => {
    const key = keys.get(options) ?? newIdempotencyKey()
    keys.set(options, key)
    return key
  }
  return {
    specificationVersion: "v4",
    provider: "generation-gateway.video",
    modelId,
    maxVideosPerCall: 1,
    handleWebhookOption: async ({ webhook }) => {
      const { received, url } = await webhook()
      return { webhookUrl: url, received }
    },
    doStart: async (options) => {
      const { abortSignal, headers, providerOptions, webhookUrl } = options
      const { fields, idempotencyKey = keyOf(options), maxCost } = optionsOf(providerOptions)
      const reply = await connection.transport.send({
        method: "POST",
        path: "/v1/videos",
        headers: {
          ...sent(headers),
          ...maxCostHeaders(connection.serviceName, maxCost)
        },
        body: await encodeBody({
          model: modelId,
          ...bodyOf(options),
          ...(webhookUrl === undefined ? {} : { webhook: { url: webhookUrl } }),
          ...fields
        }),
        idempotencyKey,
        isRepeatable: true,
        signal: abortSignal
      })
      const task = taskAt(reply.headers.get("content-location"))
      if (task === undefined) throw new Error("The response is not the gateway's")
      return {
        operation: { ...task },
        warnings: warningsOf(options),
        response: responseOf(modelId, reply.headers)
      }
    },
    doStatus: async ({ abortSignal, operation }) => {
      const task = await connection.client.tasks.get(refOf(operation), { signal: abortSignal })
      const response = responseOf(modelId)
      const { cost = null, error, id, sandbox, status, videos } = task
      const providerMetadata = { [optionsKey]: { task: id, cost, sandbox } }
      if (status === "completed") {
        return {
          status,
          // Downloaded here, because the AI SDK refuses private addresses, where a gateway may be
          videos: await Promise.all(
            videos.map(async (url) => ({
              type: "binary",
              data: await download(connection, url, abortSignal),
              mediaType: "video/mp4"
            }))
          ),
          warnings: [],
          providerMetadata,
          response
        }
      }
      return status === "failed"
        ? {
            status: "error",
            error: error === undefined ? "It failed" : `${error.title}: ${error.detail}`,
            providerMetadata,
            response
          }
        : { status: "pending", providerMetadata, response }
    }
  }
}

/** The body of `POST /v1/videos`: its own fields and those that models share. docs/reference/shapes.md#videos */
const bodyOf = (options: CallOptions): object => {
  const { aspectRatio, duration, frameImages = [], generateAudio, image, prompt } = options
  const first = image ?? frameImages.find(({ frameType }) => frameType === "first_frame")?.image
  const last = frameImages.find(({ frameType }) => frameType === "last_frame")?.image
  return {
    prompt,
    size: options.resolution,
    seconds: duration,
    seed: options.seed,
    aspect_ratio: aspectRatio === "adaptive" ? undefined : aspectRatio,
    audio: generateAudio,
    ...(first === undefined ? {} : { input_reference: mediumOf(first) }),
    ...(last === undefined ? {} : { last_frame: mediumOf(last) })
  }
}

const warningsOf = ({ fps, inputReferences }: CallOptions): Array<SharedV4Warning> => [
  ...(fps === undefined ? [] : [{ type: "unsupported" as const, feature: "fps" }]),
  ...(inputReferences === undefined
    ? []
    : [{ type: "unsupported" as const, feature: "inputReferences" }])
]

/** Parses what `doStart` returned, wherever it was stored in between. */
const refOf = (operation: unknown): TaskRef => {
  const known: Partial<Record<keyof TaskRef, unknown>> =
    typeof operation === "object" && operation !== null ? operation : {}
  const { action, id, model, vendor } = known
  if (typeof id !== "string" || typeof model !== "string" || typeof vendor !== "string") {
    throw new TypeError("The operation is not one that this provider started")
  }
  return { id, model, vendor, action: action === "edit" ? "edit" : "generation" }
}
