import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import { GatewayClient } from "../../../src/client/effect.ts"

/** docs/client.md#effect */

const ref = {
  id: "1",
  vendor: "alibaba",
  model: "text-to-image-max",
  action: "generation"
} as const

const texts = {
  task: JSON.stringify({ task_info: { id: "1", status: "pending" } }),
  event: JSON.stringify({ type: "event", data: { id: "evt_1" } })
}

/** A client whose requests get a stream with this event, which stays open, and the signals of its requests. */
const clientOf = (text: string) => {
  const signals: Array<AbortSignal> = []
  const fetch: typeof globalThis.fetch = async (_, init) => {
    signals.push(init!.signal!)
    const start = (controller: ReadableStreamDefaultController) =>
      controller.enqueue(new TextEncoder().encode(`data: ${text}\n\n`))
    const headers = { "content-type": "text/event-stream" }
    return new Response(new ReadableStream({ start }), { headers })
  }
  const client = GatewayClient.layer({
    baseUrl: "http://gateway.test",
    apiKey: Redacted.make("sk-test")
  }).pipe(Layer.provide(Layer.succeed(FetchHttpClient.Fetch, fetch)))
  return { client, signals }
}

describe("a Stream that its consumer stops reading", () => {
  it.effect("closes its connection", () =>
    Effect.gen(function* () {
      for (const kind of ["task", "event"] as const) {
        const { client, signals } = clientOf(texts[kind])
        const first = GatewayClient.use(({ events, tasks }) =>
          Stream.runHead<unknown, unknown, never>(
            kind === "task" ? tasks.watch(ref) : events.listen()
          )
        )
        assert.strictEqual((yield* first.pipe(Effect.provide(client)))._tag, "Some")
        assert.deepStrictEqual(
          signals.map(({ aborted }) => aborted),
          [true],
          kind
        )
      }
    })
  )
})
