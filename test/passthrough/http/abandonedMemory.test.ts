import { Effect } from "effect"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { assert, it } from "vitest"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { kept, keepsLessThan, megabyte } from "../../support/heap.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import { chat } from "../../support/reasoningStreams.ts"

/** docs/reference/passthrough.md#streams-left-by-their-client */
const promptBytes = 4 * megabyte
const streamsMax = 4

it("a stream that is read on after its client has left keeps neither request nor response", async () => {
  const { body, events, path } = chat()
  const open: Array<ServerResponse> = []
  // Unlike the recording mock, it does not keep bodies
  const upstream = createServer((request, response) => {
    request.resume()
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(events[0])
      open.push(response)
    })
  })
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve))
  const gateway = await startGateway({
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  })
  const leave = async (promptLength: number) => {
    const opened = gateway.open()
    const controller = new AbortController()
    const prompt = { ...body, messages: [{ role: "user", content: "x".repeat(promptLength) }] }
    const answer = await gateway.post(path, prompt, {}, { signal: controller.signal })
    const reader = answer.body!.getReader()
    await reader.read()
    controller.abort()
    await reader.read().catch(() => {})
    while (gateway.open() > opened) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await leave(promptBytes)
  const before = kept()
  for (let count = 0; count < streamsMax; count += 1) await leave(promptBytes)
  await Effect.runPromise(keepsLessThan(promptBytes, before))
  const wallet = await gateway.run(Effect.flatMap(Wallet, ({ get }) => get(gateway.userId)))
  assert.notEqual(wallet.held, 0n)
  for (const response of open) response.end(events.slice(1).join(""))
  await gateway.settled()
  const calls = await gateway.calls()
  assert.isTrue(calls.every(({ usage }) => usage?.["outputTokens"] === 20_010))
  await gateway.stop()
  upstream.closeAllConnections()
  await new Promise((resolve) => upstream.close(resolve))
})
