import { Effect, Fiber } from "effect"
import { GatewayHttp, readResult } from "./gateway.ts"

/** Sends a POST whose body, bytes or JSON, stays incomplete until `finish`. */
export const beginPost = Effect.fnUntraced(function* (
  path: string,
  headers: Readonly<Record<string, string>>,
  body: unknown
) {
  const { fetch } = yield* GatewayHttp
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  let sender: ReadableStreamDefaultController<Uint8Array> | undefined
  const asked = Promise.withResolvers<void>()
  const stream = new ReadableStream<Uint8Array>(
    {
      start: (controller) => void (sender = controller),
      pull: () => asked.resolve()
    },
    // Requests bytes only when there is a reader
    { highWaterMark: 0 }
  )
  const init: RequestInit & { readonly duplex: "half" } = {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "content-length": String(bytes.length),
      ...headers
    },
    body: stream,
    duplex: "half"
  }
  const asking = yield* Effect.forkChild(fetch(path, init))
  yield* Effect.promise(() => asked.promise)
  const finish = Effect.gen(function* () {
    sender?.enqueue(bytes)
    sender?.close()
    const response = yield* Fiber.join(asking)
    return yield* Effect.promise(() => readResult(response))
  })
  return { finish }
})
