import { Effect, Layer, Result } from "effect"
import type { Stream } from "effect"
import { BatchRequests, digestOf } from "../../catalog/bodies/BatchRequests.ts"
import type { AcceptedBatch, BatchRequest } from "../../catalog/bodies/BatchRequests.ts"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { batchLineBytesMax } from "../../domain/limits/FileLimits.ts"
import { forEachLine } from "../../domain/Lines.ts"
import type { Line } from "../../domain/Lines.ts"
import { inSlices } from "../../domain/shares/Slices.ts"
import type { Sliced } from "../../domain/shares/Slices.ts"
import { planCall } from "../CallPlan.ts"
import { readDocument } from "./BatchPlan.ts"

export const layer = Layer.succeed(
  BatchRequests,
  BatchRequests.of({
    read: <E>(batch: AcceptedBatch, file: Stream.Stream<Uint8Array, E>) =>
      Effect.suspend(() => {
        const requests = new Map<string, BatchRequest>()
        // One text for each model, not one for each request
        const texts = new Map<string, string>()
        const add = function* (line: Line): Sliced<void> {
          const customId = textOf(line.bytes, "custom_id")
          const body = memberOf(line.bytes, "params") ?? memberOf(line.bytes, "body")
          const named = body === undefined ? undefined : textOf(body, "model")
          if (customId === undefined || body === undefined || named === undefined) return
          const model = texts.get(named) ?? named
          texts.set(model, model)
          const hold = yield* holdOf(batch, body)
          requests.set(digestOf(customId), { model, bytes: body.length, hold })
        }
        return Effect.as(
          forEachLine(file, batchLineBytesMax, (line) => inSlices(() => add(line))),
          requests
        )
      })
  })
)

/** What the request was held for when its batch was accepted. */
function* holdOf(
  { catalog, nowMillis, route }: AcceptedBatch,
  body: Uint8Array
): Sliced<BatchRequest["hold"]> {
  const parsed = yield* readDocument(body)
  if (Result.isFailure(parsed)) return undefined
  const planned = planCall(catalog, route, undefined, body, nowMillis, { inBatch: true })
  return Result.isSuccess(planned) ? planned.success.hold : undefined
}

const textOf = (bytes: Uint8Array, key: string): string | undefined => {
  const member = memberOf(bytes, key)
  const value: unknown =
    member === undefined ? undefined : JSON.parse(Buffer.from(member).toString("utf8"))
  return typeof value === "string" ? value : undefined
}
