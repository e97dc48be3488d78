import Anthropic, { NotFoundError as AnthropicNotFound } from "@anthropic-ai/sdk"
import { decode } from "fast-png"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import OpenAI, { BadRequestError, NotFoundError } from "openai"
import { assert, describe, it } from "vitest"
import { fails } from "../../support/fails.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const file = join(temporaryFolder("catalog"), "catalog.json")
const price = { per: "million_tokens", input: "1", output: "1" }
writeFileSync(
  file,
  JSON.stringify({
    tokenModels: [
      { vendor: "openai", model: "house", price, outputTokensMax: 9, inputTokensMax: 9999 }
    ]
  })
)
const gateway = await gatewayOfTests({ CATALOG_FILE: file })
const openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.origin}/v1`, maxRetries: 0 })
const anthropic = new Anthropic({
  apiKey: gateway.key,
  baseURL: `${gateway.origin}/vendors/anthropic`,
  maxRetries: 0
})

const whole =
  "This answer comes from the built-in simulator: set a vendor key to reach the real model."
const user = { role: "user" as const, content: "Hi" }
const chat = { model: "gpt-4o", messages: [user] }
const message = { model: "claude-haiku-4-5", max_tokens: 600, messages: [user] }
const vendorOpenAi = () =>
  new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.origin}/vendors/openai/v1` })

const post = async (path: string, body: string) => {
  const answer = await fetch(`${gateway.origin}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
    body
  })
  return { status: answer.status, text: await answer.text() }
}

const schema = {
  type: "object" as const,
  properties: {
    city: { type: "string" },
    unit: { type: "string", enum: ["celsius", "fahrenheit"] },
    days: { type: "integer", minimum: 2 },
    note: { type: "string" }
  },
  required: ["city", "unit", "days"]
}
const called = { city: "simulated", unit: "celsius", days: 2 }

describe("the openai package in the sandbox", () => {
  it("gets as many choices as requested, and pays for each", async () => {
    const answer = await openai.chat.completions.create({ ...chat, n: 3 })
    assert.deepEqual(
      answer.choices.map((it) => [it.index, it.message.content, it.finish_reason]),
      [0, 1, 2].map((index) => [index, whole, "stop"])
    )
    assert.equal(answer.usage!.completion_tokens, 48)
    assert.equal((await gateway.newest()).usage!["outputTokens"], 48)
    const stream = openai.chat.completions.stream({ ...chat, n: 2 })
    const { choices } = await stream.finalChatCompletion()
    assert.deepEqual(
      choices.map((it) => it.message.content),
      [whole, whole]
    )
  })

  it("is cut off at its limit of tokens, whole and as a stream", async () => {
    for (const limit of [{ max_tokens: 3 }, { max_completion_tokens: 3 }]) {
      const { choices, usage } = await openai.chat.completions.create({ ...chat, ...limit })
      assert.deepEqual(
        [choices[0]!.message.content, choices[0]!.finish_reason, usage!.completion_tokens],
        ["This answer comes", "length", 3]
      )
    }
    const parts = []
    const asked = { ...chat, max_tokens: 3, stream_options: { include_usage: true } }
    for await (const chunk of await openai.chat.completions.create({ ...asked, stream: true }))
      parts.push(chunk)
    assert.equal(
      parts.map((it) => it.choices[0]?.delta.content ?? "").join(""),
      "This answer comes"
    )
    assert.equal(parts.findLast((it) => it.choices.length > 0)!.choices[0]!.finish_reason, "length")
    assert.equal(parts.at(-1)!.usage!.completion_tokens, 3)
    assert.equal((await gateway.newest()).usage!["outputTokens"], 3)
  })

  it("gets the usage chunk that it requests, however its JSON is formatted", async () => {
    const body = `{"model": "gpt-4o", "stream": true, "stream_options": {"include_usage" : true}, "messages": []}`
    const answer = await gateway.post("/v1/chat/completions", body)
    assert.include(await answer.text(), '"completion_tokens":16')
  })

  it("gets a call of the tool that it forces, and a text after the tool's result", async () => {
    const tools = [
      { type: "function" as const, function: { name: "other", parameters: schema } },
      { type: "function" as const, function: { name: "weather", parameters: schema } }
    ]
    const named = { type: "function" as const, function: { name: "weather" } }
    const { choices } = await openai.chat.completions.create({ ...chat, tools, tool_choice: named })
    const { message } = choices[0]!
    assert.equal(choices[0]!.finish_reason, "tool_calls")
    const call = message.tool_calls![0]!
    if (call.type !== "function") throw new Error("expected a function")
    assert.equal(call.function.name, "weather")
    assert.deepEqual(JSON.parse(call.function.arguments), called)
    const streamed = await openai.chat.completions
      .stream({ ...chat, tools, tool_choice: named })
      .finalChatCompletion()
    const again = streamed.choices[0]!.message.tool_calls![0]!
    assert.deepEqual(
      "function" in again && [again.function.name, JSON.parse(again.function.arguments)],
      ["weather", called]
    )
    const messages = [
      user,
      message,
      { role: "tool" as const, tool_call_id: call.id, content: "sunny" }
    ]
    const end = await openai.chat.completions.create({ ...chat, tools, messages })
    assert.equal(end.choices[0]!.message.content, whole)
    const none = await openai.chat.completions.create({ ...chat, tools, tool_choice: "none" })
    assert.equal(none.choices[0]!.message.content, whole)
  })

  it("streams responses, cut off and with functions too", async () => {
    const client = vendorOpenAi()
    const ask = { model: "gpt-4o", input: "Hi" }
    const plain = await client.responses.create(ask)
    assert.equal(plain.output_text, whole)
    let text = ""
    const numbers: Array<number> = []
    const stream = client.responses.stream(ask)
    for await (const event of stream) {
      numbers.push(event.sequence_number)
      if (event.type === "response.output_text.delta") text += event.delta
    }
    const end = await stream.finalResponse()
    assert.equal(text, whole)
    assert.equal(end.output_text, whole)
    assert.equal(end.status, "completed")
    assert.deepEqual(numbers, [...numbers.keys()])
    assert.equal((await gateway.newest()).usage!["outputTokens"], 16)

    const cut = await client.responses.stream({ ...ask, max_output_tokens: 2 }).finalResponse()
    assert.deepEqual([cut.output_text, cut.status], ["This answer", "incomplete"])
    assert.deepEqual(cut.incomplete_details, { reason: "max_output_tokens" })
    assert.equal((await gateway.newest()).usage!["outputTokens"], 2)

    const tools = [
      { type: "function" as const, name: "weather", parameters: schema, strict: false }
    ]
    const forced = { ...ask, tools, tool_choice: "required" as const }
    const used = await client.responses.stream(forced).finalResponse()
    const [item] = used.output
    assert.deepEqual(item!.type === "function_call" && JSON.parse(item!.arguments), called)
  })

  it("gets the vendor's 404 for an unknown model, and lists the known ones with those of the catalog", async () => {
    const error = await fails(openai.models.retrieve("nope"))
    assert.instanceOf(error, NotFoundError)
    assert.include(error.message, "The model 'nope' does not exist")
    assert.equal((error as NotFoundError).code, "model_not_found")
    for (const id of ["gpt-4o", "gpt-4o-2024-08-06", "house"]) {
      assert.equal((await openai.models.retrieve(id)).id, id)
    }
    const ids = (await openai.models.list()).data.map(({ id }) => id)
    assert.includeMembers(ids, ["gpt-4o", "house"])
    assert.notInclude(ids, "claude-haiku-4-5")
  })

  it("gets embeddings in the requested encoding: numbers or, by default, Base64", async () => {
    const client = vendorOpenAi()
    const ask = { model: "text-embedding-3-small", input: ["a", "b"], dimensions: 64 }
    const packed = await client.embeddings.create(ask)
    const plain = await client.embeddings.create({ ...ask, encoding_format: "float" })
    for (const { data } of [packed, plain]) {
      assert.deepEqual(
        data.map(({ embedding }) => embedding.length),
        [64, 64]
      )
      assert.approximately(Math.hypot(...data[0]!.embedding), 1, 1e-5)
      assert.notDeepEqual(data[0]!.embedding, data[1]!.embedding)
    }
    for (const [index, value] of packed.data[0]!.embedding.entries()) {
      assert.approximately(value, plain.data[0]!.embedding[index]!, 1e-6)
    }
    const large = await client.embeddings.create({ model: "text-embedding-3-large", input: [1, 2] })
    assert.deepEqual(
      large.data.map(({ embedding }) => embedding.length),
      [3072]
    )
    const { results } = await client.moderations.create({ input: ["a", "b"] })
    assert.deepEqual(
      results.map(({ flagged }) => flagged),
      [false, false]
    )
  })
})

describe("the former functions of the openai package in the sandbox", () => {
  const functions = [{ name: "weather", parameters: schema }]
  const forced = { ...chat, functions, function_call: { name: "weather" } }

  it("are called if forced, whole and as a stream, and a text follows their result", async () => {
    const { choices } = await openai.chat.completions.create(forced)
    const [{ finish_reason, message: said }] = [choices[0]!]
    assert.equal(finish_reason, "function_call")
    assert.equal(said.content, null)
    assert.equal(said.function_call!.name, "weather")
    assert.deepEqual(JSON.parse(said.function_call!.arguments), called)
    let name = ""
    let words = ""
    let end: string | null = null
    for await (const { choices } of await openai.chat.completions.create({
      ...forced,
      stream: true
    })) {
      name += choices[0]?.delta.function_call?.name ?? ""
      words += choices[0]?.delta.function_call?.arguments ?? ""
      end = choices[0]?.finish_reason ?? end
    }
    assert.deepEqual([name, JSON.parse(words), end], ["weather", called, "function_call"])
    const result = { role: "function" as const, name: "weather", content: "sunny" }
    const next = await openai.chat.completions.create({
      ...forced,
      messages: [user, said, result]
    })
    assert.equal(next.choices[0]!.message.content, whole)
  })

  it.each(["auto", "none"] as const)("are not called with %s", async (function_call) => {
    const { choices } = await openai.chat.completions.create({ ...chat, functions, function_call })
    assert.equal(choices[0]!.message.content, whole)
  })
})

describe("the id of a request in the sandbox", () => {
  it("is read by the vendors' packages, even from errors and the gateway's own problems", async () => {
    const one = await openai.chat.completions.create(chat)
    const other = await openai.chat.completions.create(chat)
    assert.match(one._request_id!, /^req_[0-9a-f]{32}$/u)
    assert.notEqual(one._request_id, other._request_id)
    assert.match((await openai.models.retrieve("gpt-4o"))._request_id!, /^req_/u)
    const { _request_id } = await anthropic.messages.create(message)
    assert.match(_request_id!, /^req_[0-9a-f]{32}$/u)
    const stream = anthropic.messages.stream(message)
    await stream.finalMessage()
    assert.match(stream.request_id!, /^req_/u)
    const unknown = await fails(anthropic.models.retrieve("nope"))
    assert.deepInclude<object>(unknown, { requestID: "req_simulated" })
    const refused = await fails(openai.chat.completions.create({ ...chat, model: "nope" }))
    assert.instanceOf(refused, NotFoundError)
    assert.match(refused.requestID!, /^[0-9a-f]{32}$/u)
  })
})

describe("a text in the sandbox", () => {
  const cut = "This answer comes from"
  const sequences = ["model", " the", "none"]

  it("ends before the first stop sequence of the openai package, whole and as a stream", async () => {
    for (const stop of [sequences, " the"]) {
      const asked = { ...chat, stop }
      for (const { choices, usage } of [
        await openai.chat.completions.create(asked),
        await openai.chat.completions.stream(asked).finalChatCompletion()
      ]) {
        assert.deepEqual([choices[0]!.message.content, choices[0]!.finish_reason], [cut, "stop"])
        assert.include([4, undefined], usage?.completion_tokens)
        assert.equal((await gateway.newest()).usage!["outputTokens"], 4)
      }
    }
  })

  it("ends before the first stop sequence of the @anthropic-ai/sdk package, which names it", async () => {
    const asked = { ...message, stop_sequences: sequences }
    for (const answer of [
      await anthropic.messages.create(asked),
      await anthropic.messages.stream(asked).finalMessage()
    ]) {
      assert.deepInclude(answer.content[0], { type: "text", text: cut })
      assert.deepEqual([answer.stop_reason, answer.stop_sequence], ["stop_sequence", " the"])
      assert.equal(answer.usage.output_tokens, 4)
    }
    const unmet = await anthropic.messages.create({ ...message, stop_sequences: ["none"] })
    assert.deepEqual([unmet.stop_reason, unmet.stop_sequence], ["end_turn", null])
  })

  it.each([
    [sequences, cut],
    [["This"], ""]
  ])("ends before the stop sequences %j of Gemini, whole and as a stream", async (stop, text) => {
    const asked = { contents: [], generationConfig: { stopSequences: stop } }
    const path = "/vendors/google/v1beta/models/gemini-2.5-flash"
    const whole = JSON.parse(await (await gateway.post(`${path}:generateContent`, asked)).text())
    const chunks = JSON.parse(
      await (await gateway.post(`${path}:streamGenerateContent`, asked)).text()
    )
    for (const parts of [[whole], chunks]) {
      const candidates = parts.map((it: typeof whole) => it.candidates[0])
      assert.equal(candidates.map((it: typeof whole) => it.content.parts[0].text).join(""), text)
      assert.equal(candidates.at(-1).finishReason, "STOP")
      assert.isDefined(parts.at(-1).usageMetadata)
    }
    await gateway.newest()
  })
})

describe("the count of a response's tokens in the sandbox", () => {
  it("equals the charged tokens at both paths, and is free", async () => {
    const asked = { model: "gpt-4o", input: "Hi there" }
    await gateway.settled()
    const before = (await gateway.calls()).length
    for (const client of [openai, vendorOpenAi()]) {
      const counted = await client.responses.inputTokens.count(asked)
      assert.equal(counted.object, "response.input_tokens")
      const { usage } = await client.responses.create(asked)
      assert.equal(counted.input_tokens, usage!.input_tokens)
    }
    await gateway.settled()
    assert.lengthOf(await gateway.calls(), before + 2)
  })

  it("is refused for conversations and responses stored at the vendor", async () => {
    for (const stored of [{ conversation: "conv_1" }, { previous_response_id: "resp_1" }]) {
      const error = await fails(
        openai.responses.inputTokens.count({ model: "gpt-4o", input: "Hi", ...stored })
      )
      assert.instanceOf(error, BadRequestError)
      assert.deepInclude<object>(error, { code: "2001" })
    }
  })
})

describe("the @anthropic-ai/sdk package in the sandbox", () => {
  it("is cut off at its limit of tokens, whole and as a stream", async () => {
    const cut = { ...message, max_tokens: 3 }
    for (const answer of [
      await anthropic.messages.create(cut),
      await anthropic.messages.stream(cut).finalMessage()
    ]) {
      assert.deepInclude(answer.content[0], { type: "text", text: "This answer comes" })
      assert.deepEqual([answer.stop_reason, answer.usage.output_tokens], ["max_tokens", 3])
      assert.equal((await gateway.newest()).usage!["outputTokens"], 3)
    }
    const { input_tokens } = await anthropic.messages.countTokens({
      model: message.model,
      messages: message.messages
    })
    assert.isAbove(input_tokens, 0)
  })

  it("gets a use of the tool that it forces, and a text after the tool's result", async () => {
    const tools = [{ name: "weather", input_schema: schema }]
    const forced = { ...message, tools, tool_choice: { type: "any" as const } }
    const first = await anthropic.messages.create(forced)
    const streamed = await anthropic.messages.stream(forced).finalMessage()
    for (const answer of [first, streamed]) {
      assert.equal(answer.stop_reason, "tool_use")
      assert.deepInclude(answer.content[0], { type: "tool_use", name: "weather", input: called })
    }
    const [use] = first.content
    const result = {
      type: "tool_result" as const,
      tool_use_id: use!.type === "tool_use" ? use!.id : "",
      content: "sunny"
    }
    const messages = [
      user,
      { role: "assistant" as const, content: first.content },
      { role: "user" as const, content: [result] }
    ]
    const end = await anthropic.messages.create({ ...message, tools, messages })
    assert.deepInclude(end.content[0], { type: "text", text: whole })
  })

  it("gets the vendor's 404 for an unknown model, and lists the known ones", async () => {
    const error = await fails(anthropic.models.retrieve("nope"))
    assert.instanceOf(error, AnthropicNotFound)
    assert.include(error.message, "model: nope")
    assert.equal((await anthropic.models.retrieve("claude-haiku-4-5")).id, "claude-haiku-4-5")
  })
})

describe("Gemini's format in the sandbox", () => {
  const path = "/vendors/google/v1/models/gemini-2.5-flash"
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }]

  it("streams one array unless events are requested, and charges its usage", async () => {
    const answer = await gateway.post(`${path}:streamGenerateContent`, { contents })
    assert.equal(answer.headers.get("content-type"), "application/json")
    const chunks = (await answer.json()) as Array<{
      candidates: Array<{ content: { parts: Array<{ text: string }> }; finishReason?: string }>
    }>
    assert.equal(chunks.map((it) => it.candidates[0]!.content.parts[0]!.text).join(""), whole)
    assert.equal(chunks.at(-1)!.candidates[0]!.finishReason, "STOP")
    const { usage } = await gateway.newest()
    assert.deepInclude(usage, { outputTokens: 16, counted: false })
  })
})

describe("Gemini's images in the sandbox", () => {
  const path = "/vendors/google/v1beta/models/gemini-nano-banana-2.1"
  const ask = (...responseModalities: Array<string>) => ({
    contents: [{ role: "user", parts: [{ text: "A fox" }] }],
    generationConfig: { responseModalities }
  })
  const read = (parts: Array<{ text?: string; inlineData?: { mimeType: string; data: string } }>) =>
    parts.map(({ inlineData, text }) => {
      if (inlineData === undefined) return text
      const { height, width } = decode(Buffer.from(inlineData.data, "base64"))
      return `${inlineData.mimeType} ${width}x${height}`
    })

  it("are made on request, whole and as a stream, and charged as images", async () => {
    const answer = await gateway.post(`${path}:generateContent`, ask("IMAGE"))
    const { candidates } = JSON.parse(await answer.text())
    assert.deepEqual(read(candidates[0].content.parts), ["image/png 1024x1024"])
    const { usage } = await gateway.newest()
    assert.deepInclude(usage, { imageOutputTokens: 1120, outputTokens: 1120, counted: false })

    const stream = await gateway.post(`${path}:streamGenerateContent`, ask("TEXT", "IMAGE"))
    const [only] = JSON.parse(await stream.text())
    assert.deepEqual(read(only.candidates[0].content.parts), [whole, "image/png 1024x1024"])
  })
})

describe("Gemini's embeddings in the sandbox", () => {
  const model = "/vendors/google/v1beta/models/gemini-embedding-001"
  const content = { parts: [{ text: "Hi" }] }

  it("have the requested length, one for a content or for each request of a batch", async () => {
    const read = async (path: string, body: object) =>
      JSON.parse((await post(path, JSON.stringify(body))).text)
    const one = await read(`${model}:embedContent`, { content })
    assert.equal(one.embedding.values.length, 3072)
    assert.isAbove(one.usageMetadata.promptTokenCount, 0)
    const requests = [{ content }, { content, outputDimensionality: 8 }]
    const both = await read(`${model}:batchEmbedContents`, { requests })
    assert.deepEqual(both.embeddings[0], one.embedding)
    assert.equal(both.embeddings[1].values.length, 8)
    assert.closeTo(Math.hypot(...both.embeddings[1].values), 1, 1e-6)
  })

  it("are refused above the vendor's limit of a hundred", async () => {
    const requests = Array.from({ length: 101 }, () => ({ content }))
    const refused = await gateway.post(`${model}:batchEmbedContents`, { requests })
    assert.equal(refused.status, 400)
    assert.include(await refused.text(), "at most 100 requests can be in one batch")
  })
})

describe("every route in the sandbox", () => {
  it("returns the same bytes for the same request, with the sandbox header", async () => {
    const tools = [{ type: "function", function: { name: "f", parameters: schema } }]
    const calls: ReadonlyArray<readonly [string, object]> = [
      ["/v1/chat/completions", { ...chat, n: 2, max_tokens: 5 }],
      ["/v1/chat/completions", { ...chat, stream: true, tools, tool_choice: "required" }],
      ["/vendors/openai/v1/responses", { model: "gpt-4o", input: "Hi", stream: true }],
      ["/vendors/openai/v1/moderations", { input: "Hi" }],
      ["/vendors/openai/v1/embeddings", { model: "text-embedding-3-small", input: ["a", "b"] }],
      ["/vendors/anthropic/v1/messages", message],
      ["/vendors/anthropic/v1/messages", { ...message, stream: true }],
      ["/vendors/google/v1beta/models/gemini-2.5-flash:generateContent", { contents: [] }],
      ["/vendors/google/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", {}],
      ["/vendors/google/v1beta/models/gemini-2.5-flash:countTokens", {}]
    ]
    for (const [route, body] of calls) {
      const answers = [await gateway.post(route, body), await gateway.post(route, body)]
      for (const answer of answers) {
        assert.equal(answer.status, 200, route)
        assert.equal(answer.headers.get("x-service-sandbox"), "true", route)
      }
      const [one, other] = await Promise.all(answers.map((it) => it.text()))
      assert.equal(one, other, route)
    }
    await gateway.settled()
    assert.isTrue((await gateway.calls()).every(({ sandbox }) => sandbox))
    assert.equal(await gateway.drift(), 0)
  })

  it("returns JSON that fits the schema, cut off at the limit of tokens", async () => {
    const output = { type: "json_schema", schema, name: "trip", json_schema: { schema } }
    const json = JSON.stringify(called)
    const calls: ReadonlyArray<readonly [string, object]> = [
      ["/v1/chat/completions", { ...chat, response_format: output }],
      // As at llama.cpp, Together and Fireworks
      ["/v1/chat/completions", { ...chat, response_format: { type: "json_object", schema } }],
      ["/vendors/openai/v1/responses", { model: "gpt-4o", input: "Hi", text: { format: output } }],
      ["/vendors/anthropic/v1/messages", { ...message, output_config: { format: output } }],
      ["/vendors/anthropic/v1/messages", { ...message, output_format: output }],
      ...["responseSchema", "responseJsonSchema"].map((name): readonly [string, object] => [
        "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent",
        { generationConfig: { responseMimeType: "application/json", [name]: schema } }
      ])
    ]
    for (const [route, body] of calls) {
      const answer = await gateway.post(route, body)
      assert.include(await answer.text(), JSON.stringify(json), `${route} ${JSON.stringify(body)}`)
    }
    const cut = await openai.chat.completions.create({
      ...chat,
      max_tokens: 3,
      response_format: { type: "json_schema", json_schema: { name: "trip", schema } }
    })
    assert.deepEqual(
      [cut.choices[0]!.message.content, cut.choices[0]!.finish_reason],
      [json.slice(0, 12), "length"]
    )
    const one = await gateway.post("/vendors/google/v1/models/gemini-2.5-flash:generateContent", {
      generationConfig: {
        responseMimeType: "text/x.enum",
        responseSchema: { type: "STRING", enum: ["sunny", "wet"] }
      }
    })
    assert.include(await one.text(), '{"text":"sunny"}')
  })

  it("refuses a schema that no value fits, in the vendor's format", async () => {
    const format = { type: "json_schema", schema: { type: "string", enum: [] } }
    const answer = await gateway.post("/vendors/anthropic/v1/messages", {
      ...message,
      output_config: { format }
    })
    assert.equal(answer.status, 400)
    assert.deepInclude(await answer.json(), {
      error: { type: "invalid_request_error", message: "No value fits the schema" }
    })
  })

  it("refuses a message without max_tokens, as Anthropic does, but counts its tokens", async () => {
    const { max_tokens: _, ...unlimited } = message
    const answer = await gateway.post("/v1/messages", unlimited)
    assert.equal(answer.status, 400)
    assert.deepInclude(await answer.json(), {
      type: "error",
      error: { type: "invalid_request_error", message: "max_tokens: Field required" }
    })
    const wrong = await gateway.post("/v1/messages", { ...message, max_tokens: null })
    assert.equal(wrong.status, 400)
    const counted = await gateway.post("/v1/messages/count_tokens", unlimited)
    assert.equal(counted.status, 200)
  })

  it.each([
    ["/vendors/openai/v1/chat/completions", { model: "gpt-4o", messages: [1] }],
    ["/vendors/anthropic/v1/messages", { ...message, messages: "Hi" }],
    ["/vendors/google/v1beta/models/gemini-2.5-flash:generateContent", { contents: [[]] }]
  ])("refuses messages at %s that are not objects", async (path, body) => {
    const answer = await gateway.post(path, body)
    assert.equal(answer.status, 400)
    assert.match(await answer.text(), /'(?:messages|contents)' must be a list of objects/u)
  })

  it("does not get bodies that are nested too deeply", async () => {
    const deep = "[".repeat(60_000) + "]".repeat(60_000)
    const example = `{"type":"function","name":"f","parameters":{"const":{"a":${deep}}}}`
    const forced = `"tool_choice":"required","tools":[${example}]`
    const google = "/vendors/google/v1/models/gemini-2.5-flash:generateContent"
    for (const [route, body] of [
      ["/v1/chat/completions", `{"model":"gpt-4o",${forced}}`],
      ["/v1/chat/completions", `{"model":"gpt-4o","messages":${deep},"x":"\\u0041"}`],
      ["/vendors/openai/v1/moderations", `{"tool_choice":{"type":${deep}}}`],
      ["/vendors/anthropic/v1/messages", `{"model":"claude-haiku-4-5","max_tokens":9,${forced}}`],
      [
        google,
        `{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"const":{"a":${deep}}}}]}]}`
      ]
    ] as const) {
      const answer = await post(route, body)
      assert.equal(answer.status, 400, `${route} ${answer.text.slice(0, 300)}`)
      assert.include(answer.text, "nested too deeply")
    }
    await gateway.settled()
    assert.equal(await gateway.drift(), 0)
  })

  it("limits the size of the response to a small request", async () => {
    const input = (count: number) => ({
      model: "text-embedding-3-small",
      dimensions: 2,
      input: Array.from({ length: count }, () => "x")
    })
    for (const route of ["/vendors/openai/v1/embeddings", "/vendors/openai/v1/moderations"]) {
      assert.equal((await gateway.post(route, input(2048))).status, 200, route)
      const refused = await gateway.post(route, input(2049))
      assert.equal(refused.status, 400, route)
      assert.include(await refused.text(), "2048")
    }
    let nested: object = { type: "string" }
    for (let level = 0; level < 8; level += 1) {
      nested = { type: "object", properties: { a: nested }, required: Array(1000).fill("a") }
    }
    const tools = [{ type: "function", function: { name: "f", parameters: nested } }]
    const called = await gateway.post("/v1/chat/completions", {
      ...chat,
      tools,
      tool_choice: "required"
    })
    assert.include(await called.text(), "tool_calls")
    const large = { type: "object", const: { a: "x".repeat(90_000) } }
    const long = [{ type: "function", function: { name: "f", parameters: large } }]
    const cut = await gateway.post("/v1/chat/completions", {
      ...chat,
      n: 128,
      tools: long,
      tool_choice: "required"
    })
    assert.isBelow((await cut.text()).length, 100_000)
  })
})
