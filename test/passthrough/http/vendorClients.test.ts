import Anthropic, {
  APIConnectionTimeoutError as AnthropicTimeout,
  APIUserAbortError as AnthropicAbort,
  NotFoundError as AnthropicNotFound
} from "@anthropic-ai/sdk"
import { GoogleGenAI } from "@google/genai"
import OpenAI, {
  APIConnectionTimeoutError,
  AuthenticationError,
  BadRequestError,
  NotFoundError
} from "openai"
import { assert, describe, it } from "vitest"
import { anthropicScript, messageEvents, mockAnthropic } from "../../support/mockAnthropic.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

const openAiMock = await upstreamOfTests(mockOpenAi())
const anthropicMock = await upstreamOfTests(mockAnthropic())
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor-openai",
  OPENAI_BASE_URL: `${openAiMock.origin}/v1`,
  ANTHROPIC_API_KEY: "sk-vendor-anthropic",
  ANTHROPIC_BASE_URL: anthropicMock.origin
})
const openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.origin}/v1` })
const anthropic = new Anthropic({
  apiKey: gateway.key,
  baseURL: `${gateway.origin}/vendors/anthropic`
})

const fails = async (call: PromiseLike<unknown>): Promise<Error & Record<string, unknown>> => {
  try {
    await call
  } catch (error) {
    return error as Error & Record<string, unknown>
  }
  throw new Error("expected a failure")
}

const chat = {
  model: "gpt-4o",
  max_tokens: 600,
  messages: [{ role: "user" as const, content: "Hi ".repeat(1000) }]
}
const message = { ...chat, model: "claude-sonnet-4-5" }
/** A client's timeout: long enough for its call to have reached the upstream. */
const timeout = 2000
const tool = { name: "f", input_schema: { type: "object" as const } }

describe("the openai package, unchanged", () => {
  it("chats, and lists models", async () => {
    const answer = await openai.chat.completions.create(chat)
    assert.equal(answer.choices[0]!.message.content, "Hello there")
    assert.equal(answer.usage!.total_tokens, 1500)
    const models = await openai.models.list()
    assert.equal(models.data[0]!.id, "gpt-4o")
  })

  it("is told if its base URL lacks the version", async () => {
    const misled = new OpenAI({ apiKey: gateway.key, baseURL: gateway.origin })
    for (const call of [misled.chat.completions.create(chat), misled.models.list()]) {
      const fault = await fails(call)
      assert.instanceOf(fault, NotFoundError)
      assert.match(fault.message, /the base URL must end in \/v1$/u)
    }
  })

  it.each([
    ["openai", "/v1/v1", "must not end in /v1"],
    ["openai", "/vendors/openai", "must end in /vendors/openai/v1"],
    ["anthropic", "/v1", "must not end in /v1"],
    ["anthropic", "/vendors/anthropic/v1", "must end in /vendors/anthropic"],
    ["google", "/vendors/google/v1beta", "must end in /vendors/google"],
    ["google", "", "must end in /vendors/google"]
  ])("the client of %s is told if its base URL ends in %s", async (vendor, end, advice) => {
    const baseURL = `${gateway.origin}${end}`
    const apiKey = gateway.key
    const calls: Record<string, ReadonlyArray<() => Promise<unknown>>> = {
      openai: [() => new OpenAI({ apiKey, baseURL }).chat.completions.create(chat)],
      anthropic: [() => new Anthropic({ apiKey, baseURL }).messages.create(message)],
      google: ["v1", "v1beta"].map((apiVersion) => {
        const { models } = new GoogleGenAI({
          apiKey,
          apiVersion,
          httpOptions: { baseUrl: baseURL }
        })
        return () => models.generateContent({ model: "gemini-2.5-flash", contents: "Hi" })
      })
    }
    for (const call of calls[vendor]!) {
      const { message } = await fails(call())
      assert.include(message, `There is no such route: the base URL ${advice}`)
      assert.notInclude(message, `${advice}/`)
    }
  })

  it("streams, without a usage chunk that it did not request", async () => {
    let text = ""
    for await (const chunk of await openai.chat.completions.create({ ...chat, stream: true })) {
      assert.equal(chunk.choices.length, 1)
      text += chunk.choices[0]!.delta.content ?? ""
    }
    assert.equal(text, "Hello there")
  })

  it("calls tools", async () => {
    const answer = await openai.chat.completions.create({
      ...chat,
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }]
    })
    const call = answer.choices[0]!.message.tool_calls![0]!
    assert.equal(call.type === "function" && call.function.arguments, '{"a":1}')
  })

  it("shows the gateway's message in its errors, and the upstream's in the upstream's errors", async () => {
    const unpriced = await fails(openai.chat.completions.create({ ...chat, model: "gpt-unknown" }))
    assert.instanceOf(unpriced, NotFoundError)
    assert.include(unpriced.message, "gpt-unknown is not offered here: it has no price")
    const wrongKey = new OpenAI({ apiKey: "sk-wrong", baseURL: `${gateway.origin}/v1` })
    const unknown = await fails(wrongKey.chat.completions.create(chat))
    assert.instanceOf(unknown, AuthenticationError)
    assert.include(unknown.message, "malformed")
    openAiMock.script = (_, response) =>
      json(response, 400, { error: { message: "max_tokens is too large", code: "bad" } })
    const refused = await fails(openai.chat.completions.create(chat))
    assert.instanceOf(refused, BadRequestError)
    assert.include(refused.message, "max_tokens is too large")
  })

  it("cancels a stream, and the upstream's connection is closed", async () => {
    openAiMock.script = (_, response) =>
      events(response, chatEvents(["a", "b"], false), () => new Promise(() => {}))
    const stream = await openai.chat.completions.create({ ...chat, stream: true })
    for await (const _ of stream) stream.controller.abort()
    await until(() => openAiMock.seen[0]!.aborted !== undefined, {
      what: "the upstream is aborted"
    })
    await gateway.settled()
  })

  it("times out on its own", async () => {
    openAiMock.script = () => {}
    const error = await fails(openai.chat.completions.create(chat, { timeout, maxRetries: 0 }))
    assert.instanceOf(error, APIConnectionTimeoutError)
    await until(() => openAiMock.seen[0]!.aborted !== undefined, {
      what: "the upstream is aborted"
    })
  })

  it("retries when the upstream says so; the gateway never does", async () => {
    let calls = 0
    openAiMock.script = (request, response) => {
      calls += 1
      return calls === 1
        ? json(response, 500, { error: { message: "once" } }, { "retry-after-ms": "1" })
        : openAiScript(request, response)
    }
    await openai.chat.completions.create(chat, { maxRetries: 2 })
    assert.equal(calls, 2)
  })
})

/** The newest call was charged for its prompt, one token per four bytes. */
const assertPromptCharged = async () => {
  const call = (await gateway.calls())[0]!
  assert.equal(call.outcome, "settled")
  const inputTokens = Math.ceil(anthropicMock.seen[0]!.body.length / 4)
  assert.deepEqual(call.usage, { inputTokens, outputTokens: 0, counted: true })
}

describe("the @anthropic-ai/sdk package, unchanged", () => {
  it("sends messages with its key in x-api-key, and the vendor receives the service's key", async () => {
    const answer = await anthropic.messages.create(message)
    assert.equal(answer.content[0]!.type === "text" && answer.content[0]!.text, "Hello there")
    const { headers, url } = anthropicMock.seen[0]!
    assert.equal(url, "/v1/messages")
    assert.equal(headers["x-api-key"], "sk-vendor-anthropic")
    assert.match(String(headers["anthropic-version"]), /^\d{4}-\d{2}-\d{2}$/)
    await gateway.settled()
    // 600 input at 300, 400 cached at 30, 500 output at 1500 credits a million
    assert.equal((await gateway.calls())[0]!.captured, 942_000n)
  })

  it("streams, and the cumulative usage of the stream is charged", async () => {
    const stream = anthropic.messages.stream(message)
    assert.equal(await stream.finalText(), "Hello there")
    await gateway.settled()
    assert.equal((await gateway.calls())[0]!.captured, 942_000n)
  })

  it("uses tools", async () => {
    const answer = await anthropic.messages.create({ ...message, tools: [tool] })
    const [block] = answer.content
    assert.deepEqual(block!.type === "tool_use" && block!.input, { a: 1 })
  })

  it("shows the gateway's message in its errors, and the upstream's in the upstream's errors", async () => {
    const unpriced = await fails(anthropic.messages.create({ ...message, model: "claude-unknown" }))
    assert.instanceOf(unpriced, AnthropicNotFound)
    assert.include(unpriced.message, "claude-unknown is not offered here: it has no price")
    const error = { type: "overloaded_error", message: "Overloaded" }
    anthropicMock.script = (_, response) => json(response, 529, { type: "error", error })
    const overloaded = await fails(anthropic.messages.create(message, { maxRetries: 0 }))
    assert.include(overloaded.message, "Overloaded")
  })

  it("cancels a stream: the usage that the upstream reported, and what was received, is charged", async () => {
    anthropicMock.script = (_, response) =>
      events(response, messageEvents(), (index) =>
        index < 4 ? Promise.resolve() : new Promise(() => {})
      )
    const stream = anthropic.messages.stream(message, { maxRetries: 0 })
    stream.on("text", () => stream.abort())
    await fails(stream.finalText())
    await until(() => anthropicMock.seen[0]?.aborted !== undefined, {
      what: "the upstream is aborted"
    })
    await gateway.settled()
    const call = (await gateway.calls())[0]!
    assert.isTrue(call.usage!["counted"])
    assert.equal(call.usage!["inputTokens"], 1000)
    assert.equal(await gateway.drift(), 0)
  })

  it("cancels a call that waits for its response, and only the prompt is charged", async () => {
    anthropicMock.script = () => {}
    const controller = new AbortController()
    const call = fails(anthropic.messages.create(message, { signal: controller.signal }))
    await until(() => anthropicMock.seen.length === 1, { what: "the upstream is called" })
    controller.abort()
    assert.instanceOf(await call, AnthropicAbort)
    await until(() => anthropicMock.seen[0]!.aborted !== undefined, {
      what: "the upstream is aborted"
    })
    await gateway.settled()
    await assertPromptCharged()
    assert.equal(anthropicMock.seen.length, 1)
  })

  it("times out on its own, and the gateway sends no second request", async () => {
    anthropicMock.script = () => {}
    const error = await fails(anthropic.messages.create(message, { timeout, maxRetries: 0 }))
    assert.instanceOf(error, AnthropicTimeout)
    await until(() => anthropicMock.seen[0]?.aborted !== undefined, {
      what: "the upstream is aborted"
    })
    assert.equal(anthropicMock.seen.length, 1)
    await gateway.settled()
    await assertPromptCharged()
  })

  it("retries when the upstream says so; the gateway never does", async () => {
    const overloaded = { type: "overloaded_error", message: "Overloaded" }
    for (const [status, again] of [
      [500, "retry-after-ms"],
      [529, "retry-after-ms"]
    ] as const) {
      let calls = 0
      anthropicMock.script = (request, response) => {
        calls += 1
        return calls === 1
          ? json(response, status, { type: "error", error: overloaded }, { [again]: "1" })
          : anthropicScript(request, response)
      }
      const answer = await anthropic.messages.create(message, { maxRetries: 2 })
      assert.equal(answer.content[0]!.type, "text")
      assert.equal(calls, 2)
      calls = 0
      await fails(anthropic.messages.create(message, { maxRetries: 0 }))
      assert.equal(calls, 1)
    }
    await gateway.settled()
    assert.equal(await gateway.drift(), 0)
  })
})
