import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import type { ServerResponse } from "node:http"
import { join } from "node:path"
import { assert, beforeEach, describe, it } from "vitest"
import {
  abandonedStreamBytesMax,
  abandonedStreamsPerUserMax
} from "../../../src/domain/limits/Limits.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import type { Seen } from "../../support/mockVendors.ts"
import { gatewayOfTests, startGateway, jsonOf } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"
import { chat, gemini, messages, responses } from "../../support/reasoningStreams.ts"
import type { ReasoningStream } from "../../support/reasoningStreams.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/reference/passthrough.md#streams-left-by-their-client */
/** What the upstream sends at first, and what it sends after `resume`. */
let first: ReadonlyArray<string> = []
let rest: ReadonlyArray<string> | "breaks" = []
let resume: () => void = () => {}
let resumed: Promise<void> = Promise.resolve()

const script = async (_: Seen, response: ServerResponse): Promise<void> => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const event of first) response.write(event)
  await resumed
  if (rest === "breaks") {
    response.destroy()
    return
  }
  for (const event of rest) response.write(event)
  response.end()
}

const envOf = (catalog: string) => ({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: upstream.origin,
  ANTHROPIC_API_KEY: "sk-ant-vendor",
  ANTHROPIC_BASE_URL: upstream.origin,
  GEMINI_API_KEY: "gemini-vendor",
  GEMINI_BASE_URL: upstream.origin,
  CATALOG_FILE: catalog
})

const catalogFile = () => {
  const file = join(temporaryFolder("catalog"), "catalog.json")
  const to = [{ model: "openai/gpt-5.1" }, { model: "openai/gpt-4o" }]
  writeFileSync(file, JSON.stringify({ aliases: [{ alias: "smart", vendor: "openai", to }] }))
  return file
}

const upstream = await upstreamOfTests(mockVendor(script))
const gateway = await gatewayOfTests(envOf(catalogFile()), 100_000n)
beforeEach(() => {
  resumed = new Promise((resolve) => (resume = resolve))
})

const newestOf = async (from: TestGateway) => {
  await from.settled()
  assert.equal(await from.drift(), 0)
  return (await from.calls())[0]!
}

type Receipt = Awaited<ReturnType<typeof newestOf>>
const receipts = new Map<ReasoningStream, Receipt>()

/** The receipt of the stream, read to its end once. */
const readToEnd = async (stream: ReasoningStream): Promise<Receipt> => {
  const known = receipts.get(stream)
  if (known !== undefined) return known
  first = stream.events
  rest = []
  resume()
  await (await gateway.post(stream.path, stream.body)).text()
  resumed = new Promise((resolve) => (resume = resolve))
  const receipt = await newestOf(gateway)
  receipts.set(stream, receipt)
  return receipt
}

/** Reads a stream until it shows `mark`, then disconnects. The upstream has sent nothing beyond that event. */
const leaveAt = async (
  { body, events, path }: ReasoningStream,
  mark: string,
  from: TestGateway = gateway
) => {
  const others = from.open()
  const last = events.findIndex((event) => event.includes(mark))
  assert.isAtLeast(last, 0)
  first = events.slice(0, last + 1)
  rest = events.slice(last + 1)
  const controller = new AbortController()
  const answer = await from.post(path, body, {}, { signal: controller.signal })
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = ""; !text.includes(mark);) {
    const { done, value } = await reader.read()
    assert.isFalse(done)
    text += value
  }
  controller.abort()
  await reader.read().catch(() => {})
  await until(() => from.open() <= others, { what: "the gateway knows that the client has left" })
}

/** The client has left, and the hold of its call is not settled before `resume`. */
const walletOf = ({ userId }: TestGateway) => Effect.flatMap(Wallet, (wallet) => wallet.get(userId))

const isClosed = () => upstream.seen.at(-1)!.aborted !== undefined

const reasoning = {
  chat: chat(),
  "chat by the routes": { ...chat(), path: "/v1/chat/completions?a=1" },
  "an alias": { ...chat("smart"), path: "/v1/chat/completions" },
  responses,
  messages,
  gemini
}

describe("a stream of a reasoning model that its client leaves is charged like one that is read to the end", () => {
  it.each(
    Object.entries(reasoning).flatMap(([name, stream]) =>
      Object.entries(stream.moments).map(([moment, mark]) => ({ name, stream, moment, mark }))
    )
  )("$name, left $moment", async ({ mark, stream }) => {
    const whole = await readToEnd(stream)
    assert.deepInclude(whole.usage, { outputTokens: 20_010, counted: false })
    await leaveAt(stream, mark)
    // The hold of a call that is still read stays
    assert.notEqual((await gateway.run(walletOf(gateway))).held, 0n)
    resume()
    const left = await newestOf(gateway)
    assert.deepEqual(
      { captured: left.captured, usage: left.usage, outcome: left.outcome },
      { captured: whole.captured, usage: whole.usage, outcome: "settled" }
    )
    assert.isFalse(isClosed())
  })
})

describe("a stream of a model that does not reason", () => {
  const plain = chat("gpt-4o", 500)

  it("is closed at once when its client leaves in the middle of its text, and what passed is charged", async () => {
    await leaveAt(plain, "Hello")
    await until(isClosed, { what: "the upstream is closed" })
    const { captured, usage } = await newestOf(gateway)
    const inputTokens = Math.ceil(JSON.stringify(plain.body).length / 4)
    assert.deepEqual(usage, { inputTokens, outputTokens: 2, counted: true })
    assert.equal(captured, BigInt(inputTokens) * 250n + 2n * 1000n)
    resume()
  })

  it("is charged a token for four bytes of text when its client leaves in the middle of large events", async () => {
    const pieces = ["a".repeat(1000), `${"b".repeat(996)}here`]
    const large = pieces.map((content) => ({ choices: [{ index: 0, delta: { content } }] }))
    const events = large.map((event) => `data: ${JSON.stringify(event)}\n\n`)
    for (const max_tokens of [undefined, 1000]) {
      await leaveAt({ ...plain, body: { ...plain.body, max_tokens }, events }, "here")
      const { usage } = await newestOf(gateway)
      assert.deepInclude(usage, { outputTokens: 500, counted: true })
      resume()
    }
  })

  it("is charged by the figures that follow when its client leaves after the finish event", async () => {
    const whole = await readToEnd(plain)
    await leaveAt(plain, '"stop"')
    resume()
    const left = await newestOf(gateway)
    assert.deepEqual([left.captured, left.usage], [whole.captured, whole.usage])
  })

  it("is closed at once when its client leaves after the figures, and is charged by them", async () => {
    const whole = await readToEnd(plain)
    const asked = { ...plain.body, stream_options: { include_usage: true } }
    await leaveAt({ ...plain, body: asked }, '"prompt_tokens"')
    await until(isClosed, { what: "the upstream is closed" })
    const left = await newestOf(gateway)
    assert.deepEqual([left.captured, left.usage], [whole.captured, whole.usage])
    resume()
  })

  it.each([
    ["a chat with reasoning turned off", { ...chat().body, reasoning_effort: "none" }],
    ["a response with reasoning turned off", { ...responses.body, reasoning: { effort: "none" } }]
  ])("is closed at once: %s", async (_, body) => {
    const stream = "input" in body ? responses : chat()
    await leaveAt({ ...stream, body }, "input" in body ? "output_item.added" : "Hello")
    await until(isClosed, { what: "the upstream is closed" })
    assert.deepInclude((await newestOf(gateway)).usage, { counted: true })
    resume()
  })
})

describe("a stream that its client has left is read until", () => {
  const { body, events, path } = chat()
  const promptTokens = Math.ceil(JSON.stringify(body).length / 4)
  /** Two pieces have passed, of about one token each. */
  const seen = { inputTokens: promptTokens, outputTokens: 2, counted: true }

  it("its time is over; it is charged by what was seen", async () => {
    const hasty = await startGateway({
      ...envOf(catalogFile()),
      ABANDONED_STREAM_TIMEOUT: "50 millis"
    })
    await leaveAt(chat(), "Hello", hasty)
    await until(isClosed, { what: "the upstream is closed" })
    assert.deepEqual((await newestOf(hasty)).usage, seen)
    resume()
    await hasty.stop()
  })

  it("it exceeds the limit of bytes", async () => {
    await leaveAt({ path, body, events: events.slice(0, 2), moments: {} }, "Hello")
    const comment = `: ${"x".repeat(64 * 1024 - 4)}\n\n`
    const comments = Array.from({ length: abandonedStreamBytesMax / comment.length }, () => comment)
    rest = comments
    resume()
    const whole = await newestOf(gateway)
    assert.deepEqual(whole.usage, seen)
    assert.isFalse(isClosed())

    resumed = new Promise((resolve) => (resume = resolve))
    await leaveAt({ path, body, events: events.slice(0, 2), moments: {} }, "Hello")
    // The last events come in a separate chunk
    rest = [...comments, comment, comment, comment, comment, ...events.slice(2)]
    resume()
    assert.deepEqual((await newestOf(gateway)).usage, seen)
  })

  it("the upstream breaks off; what the client has seen is charged", async () => {
    await leaveAt(chat(), "Hello")
    rest = "breaks"
    resume()
    assert.deepEqual((await newestOf(gateway)).usage, seen)
  })

  it("the upstream sends an error event; nothing is charged, as if the client had stayed", async () => {
    await leaveAt(chat(), "Hello")
    rest = [`data: ${JSON.stringify({ error: { message: "overloaded" } })}\n\n`]
    resume()
    const { captured, outcome } = await newestOf(gateway)
    assert.deepEqual([captured, outcome], [0n, "released"])
  })

  it("the process drains; it is charged by what was seen, and later streams are not read on", async () => {
    const stopping = await startGateway(envOf(catalogFile()))
    await leaveAt(chat(), "Hello", stopping)
    assert.notEqual((await stopping.run(walletOf(stopping))).held, 0n)
    await stopping.run(Effect.flatMap(Drain, ({ begin }) => begin))
    await until(isClosed, { what: "the upstream is closed" })
    assert.deepEqual((await newestOf(stopping)).usage, seen)
    await leaveAt(chat(), "Hello", stopping)
    await until(isClosed, { what: "the upstream is closed" })
    assert.deepEqual((await newestOf(stopping)).usage, seen)
    resume()
    await stopping.stop()
  })
})

describe("a stream of the sandbox", async () => {
  const sandbox = await gatewayOfTests({})

  it.each([
    ["gpt-5.1", { outputTokens: 16, counted: false }],
    ["gpt-4o", { counted: true }]
  ])("is settled like a vendor's stream when its client leaves: %s", async (model, usage) => {
    const { body, path } = chat(model)
    await leaveAt({ path, body, events: ['"assistant"'], moments: {} }, '"assistant"', sandbox)
    assert.deepInclude((await newestOf(sandbox)).usage, usage)
  })
})

describe("many streams that a user has left", () => {
  it("keep this user, and no other, from new calls until some have ended", async () => {
    const stream = chat("gpt-5-nano")
    const other = (await gateway.newCaller(1000)).key
    const leave = () => leaveAt(stream, '"assistant"')
    for (let left = 0; left < abandonedStreamsPerUserMax; left += 8) {
      await Promise.all(Array.from({ length: 8 }, leave))
    }
    const refused = await gateway.post(stream.path, stream.body)
    assert.equal(refused.status, 429)
    assert.equal((await jsonOf(refused)).code, 1201)
    assert.equal(refused.headers.get("retry-after"), "1")
    const served = await gateway.post(stream.path, stream.body, {
      authorization: `Bearer ${other}`
    })
    assert.equal(served.status, 200)
    resume()
    await served.text()
    await gateway.settled()
    const calls = (await gateway.calls()).filter(({ model }) => model === "gpt-5-nano")
    assert.isTrue(calls.every(({ usage }) => usage?.["outputTokens"] === 20_010))
    const again = await gateway.post(stream.path, stream.body)
    assert.equal(again.status, 200)
    await again.text()
    assert.equal(await gateway.drift(), 0)
  })
})
