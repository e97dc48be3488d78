import type { ImageModelV4, ImageModelV4CallOptions, SharedV4Warning } from "@ai-sdk/provider"
import { TaskFailedError } from "../client/Errors.ts"
import { newIdempotencyKey } from "../client/Keys.ts"
import { encodeBody } from "../client/Media.ts"
import { maxCostHeaders, serviceHeader } from "../client/Task.ts"
import type { Task, TaskRef } from "../client/Task.ts"
import { download, responseOf, sent, taskAt } from "./Connection.ts"
import type { Connection } from "./Connection.ts"
import { mediumOf, optionsKey, optionsOf } from "./Options.ts"

/**
 * Generates images as tasks, which are created together under one idempotency key and then awaited without a time
 * limit. Rejects with the client's errors, which the AI SDK does not retry. Aborting a call does not cancel its tasks.
 */
export const makeImageModel = (connection: Connection, modelId: string): ImageModelV4 => ({
  specificationVersion: "v4",
  provider: "generation-gateway.image",
  modelId,
  maxImagesPerCall: 10,
  doGenerate: async (options) => {
    const { abortSignal: signal } = options
    const created = await create(connection, modelId, options)
    const ended = await Promise.all(
      created.tasks.map(async (task) => {
        try {
          const { tasks } = connection.client
          // The last event of a stream does not contain the cost
          return await tasks.get(await tasks.wait(task, { signal }), { signal })
        } catch (error) {
          if (error instanceof TaskFailedError) return error
          throw error
        }
      })
    )
    const done = ended.filter((it): it is Task => !(it instanceof TaskFailedError))
    const failures = ended.filter((it) => it instanceof TaskFailedError)
    if (done.length === 0 && failures[0] !== undefined) throw failures[0]
    const images = await Promise.all(
      done.flatMap((task) => task.images.map((url) => download(connection, url, signal)))
    )
    return {
      images,
      warnings: [...warningsOf(options), ...failures.map(warningOf)],
      response: responseOf(modelId, created.headers),
      providerMetadata: {
        [optionsKey]: {
          images: done.flatMap(({ cost = null, id, images: urls, sandbox }) =>
            urls.map((url) => ({ task: id, url, cost, sandbox }))
          )
        }
      }
    }
  }
})

const warningsOf = ({ mask }: ImageModelV4CallOptions): Array<SharedV4Warning> =>
  mask === undefined
    ? []
    : [{ type: "unsupported", feature: "mask", details: "No model of the gateway takes a mask" }]

/** A task that failed beside others, so that the call has fewer images. */
const warningOf = ({ message, task }: TaskFailedError): SharedV4Warning => ({
  type: "other",
  message: `Task ${task.id} failed: ${message}`
})

const create = async (
  connection: Connection,
  model: string,
  options: ImageModelV4CallOptions
): Promise<{ readonly tasks: ReadonlyArray<TaskRef>; readonly headers: Headers }> => {
  const { abortSignal, aspectRatio, files = [], headers, n, prompt, seed, size } = options
  const { fields, idempotencyKey, maxCost } = optionsOf(options.providerOptions)
  const reply = await connection.transport.send({
    method: "POST",
    path: files.length === 0 ? "/v1/images/generations" : "/v1/images/edits",
    headers: {
      ...sent(headers),
      prefer: "respond-async",
      ...maxCostHeaders(connection.serviceName, maxCost)
    },
    body: await encodeBody({
      model,
      prompt,
      n,
      size,
      seed,
      aspect_ratio: aspectRatio,
      ...(files.length === 0 ? {} : { images: files.map(mediumOf) }),
      ...fields
    }),
    idempotencyKey: idempotencyKey ?? newIdempotencyKey(),
    isRepeatable: true,
    signal: abortSignal
  })
  const first = taskAt(reply.headers.get("location"))
  if (first === undefined) throw new Error("The response is not the gateway's")
  const ids = serviceHeader(reply.headers, "task-id")?.split(/,\s*/u) ?? [first.id]
  return { tasks: ids.map((id) => Object.assign({}, first, { id })), headers: reply.headers }
}
