import { createAlibaba } from "@ai-sdk/alibaba"
import Anthropic, { RateLimitError } from "@anthropic-ai/sdk"
import { createFalClient } from "@fal-ai/client"
import { GoogleGenAI } from "@google/genai"
import { experimental_generateVideo as generateVideo } from "ai"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { BadRequestError } from "openai"
import Replicate, { validateWebhook } from "replicate"
import { assert, describe, it } from "vitest"
import { MockVendor, startVendorServer } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { signing } from "../../../src/testing/vendors/Callbacks.ts"
import { bodyOf, catalogOfFamilies, families, pathOf } from "../../support/families.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { freePort } from "../../support/spawnService.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"
import { videoDownload } from "../support/downloads.ts"
import { fetchAt } from "../support/hosts.ts"
import { videoModel } from "../support/models.ts"

/** docs/developing.md#vendor-servers, ADR 0216: the vendors' own clients at the servers, no gateway between. */

const text = "A lighthouse at dawn"
const prompt = "a harbour"
const bytes = new Uint8Array([1, 2, 3])
const videoAfter = (after: "20 millis" | 0) =>
  MockVendor.result(after, [{ _tag: "Bytes", mime: "video/mp4", bytes }])

describe("openai at a vendor server", () => {
  const clientOf = ({ key, url }: VendorServer) =>
    new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 1 })
  const asked = { model: "gpt-4o", messages: [{ role: "user" as const, content: "Where to?" }] }

  it("calls a language model, whole and as a stream, and lists models", async () => {
    await using server = await startVendorServer("openai", { answer: () => text })
    const client = clientOf(server)
    const { choices, usage } = await client.chat.completions.create(asked)
    assert.strictEqual(choices[0]?.message.content, text)
    assert.isAbove(usage?.total_tokens ?? 0, 0)
    const stream = client.chat.completions.stream(asked)
    assert.strictEqual(await stream.finalContent(), text)
    const response = await client.responses.create({ model: "gpt-5", input: "Where to?" })
    assert.strictEqual(response.output_text, text)
    assert.include(
      (await Array.fromAsync(client.models.list())).map(({ id }) => id),
      "gpt-4o"
    )
    assert.deepEqual(
      server.requests.map(({ path }) => path),
      ["/v1/chat/completions", "/v1/chat/completions", "/v1/responses", "/v1/models"]
    )
  })

  it("makes images and a video according to each model's script", async () => {
    await using server = await startVendorServer("openai", {
      script: {
        "gpt-image-2": [MockVendor.refused("CONTENT", "not this"), MockVendor.result(0)],
        "sora-2": [videoAfter(0), MockVendor.jobFails("CONTENT", "nor this", 0)]
      }
    })
    const client = clientOf(server)
    const picture = () => client.images.generate({ model: "gpt-image-2", prompt })
    const refused = await picture().catch((error: unknown) => error)
    assert.instanceOf(refused, BadRequestError)
    assert.include(refused.message, "not this")
    assert.strictEqual((await picture()).data?.[0]?.b64_json, pixel.toString("base64"))
    const made = await client.videos.create({ model: "sora-2", prompt })
    assert.strictEqual((await client.videos.retrieve(made.id)).status, "completed")
    const content = await client.videos.downloadContent(made.id)
    assert.deepEqual(new Uint8Array(await content.arrayBuffer()), bytes)
    const other = await client.videos.create({ model: "sora-2", prompt })
    assert.strictEqual((await client.videos.retrieve(other.id)).error?.message, "nor this")
    assert.strictEqual(server.sold, 3)
  })
})

it("gets the tool calls of the script in every wire format", async () => {
  const call = { name: "weather", arguments: { city: "Basel" } }
  const answer = () => call
  await using openai = await startVendorServer("openai", {
    answer: ({ path }) => (path.endsWith("/responses") ? { ...call, arguments: "Basel" } : call)
  })
  const client = new OpenAI({ apiKey: openai.key, baseURL: `${openai.url}/v1` })
  const messages = [{ role: "user" as const, content: "Where to?" }]
  const chat = client.chat.completions.stream({ model: "gpt-4o", messages })
  const [called] = (await chat.finalMessage()).tool_calls ?? []
  assert.deepInclude(called?.type === "function" && called.function, {
    name: "weather",
    arguments: '{"city":"Basel"}'
  })
  const custom = await client.responses
    .stream({ model: "gpt-4o", input: "Where to?" })
    .finalResponse()
  assert.deepInclude(custom.output[0], {
    type: "custom_tool_call",
    name: "weather",
    input: "Basel"
  })
  await using anthropic = await startVendorServer("anthropic", { answer })
  const other = new Anthropic({ apiKey: anthropic.key, baseURL: anthropic.url })
  const { content } = await other.messages
    .stream({ model: "claude-sonnet-4-5", max_tokens: 100, messages })
    .finalMessage()
  assert.deepInclude(content[0], { type: "tool_use", name: "weather", input: { city: "Basel" } })
  await using gemini = await startVendorServer("gemini", { answer })
  const google = new GoogleGenAI({
    apiKey: gemini.key,
    httpOptions: { baseUrl: gemini.url }
  })
  const made = await google.models.generateContent({
    model: "gemini-2.5-flash",
    contents: "Where to?"
  })
  assert.deepEqual(made.functionCalls, [{ name: "weather", args: { city: "Basel" } }])
})

it("@anthropic-ai/sdk at a vendor server sends messages, whole and as a stream, and is refused", async () => {
  await using server = await startVendorServer("anthropic", { answer: () => text })
  const client = new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 })
  const messages = [{ role: "user" as const, content: "Where to?" }]
  const asked = { model: "claude-sonnet-4-5", max_tokens: 100, messages }
  const { content } = await client.messages.create(asked)
  assert.strictEqual(content[0]?.type === "text" && content[0].text, text)
  assert.strictEqual(await client.messages.stream(asked).finalText(), text)
  assert.isAbove((await client.messages.countTokens(asked)).input_tokens, 0)
  server.failNext(MockVendor.refused("RATE_LIMITED", "slow down"))
  const refused = await client.messages.create(asked).catch((error: unknown) => error)
  assert.instanceOf(refused, RateLimitError)
  assert.include(refused.message, "slow down")
  const stranger = new Anthropic({ apiKey: "no", baseURL: server.url, maxRetries: 0 })
  assert.include(String(await stranger.messages.create(asked).catch(String)), "invalid x-api-key")
})

it("@google/genai at a vendor server makes text and images", async () => {
  await using server = await startVendorServer("gemini", {
    answer: () => text,
    script: {
      "gemini-3-pro-image": [
        MockVendor.result(0, [{ _tag: "Bytes", mime: "image/png", bytes }]),
        MockVendor.jobFails("CONTENT", "not this", 0)
      ]
    }
  })
  const client = new GoogleGenAI({ apiKey: server.key, httpOptions: { baseUrl: server.url } })
  const words = { model: "gemini-2.5-flash", contents: "Where to?" }
  assert.strictEqual((await client.models.generateContent(words)).text, text)
  let streamed = ""
  for await (const chunk of await client.models.generateContentStream(words)) {
    streamed += chunk.text ?? ""
  }
  assert.strictEqual(streamed, text)
  const picture = { model: "gemini-3-pro-image", contents: prompt }
  const made = await client.models.generateContent(picture)
  const parts = made.candidates?.[0]?.content?.parts ?? []
  const final = parts.find(({ inlineData, thought }) => inlineData && thought !== true)
  assert.strictEqual(final?.inlineData?.data, Buffer.from(bytes).toString("base64"))
  const blocked = await client.models.generateContent(picture)
  assert.strictEqual(blocked.promptFeedback?.blockReasonMessage, "not this")
})

it("@fal-ai/client at a vendor server follows the queue, and sees a failure", async () => {
  const model = "fal-ai/flux/dev"
  const url = "https://cdn.example.com/1.png"
  await using server = await startVendorServer("fal", {
    script: {
      [model]: [
        MockVendor.result("30 millis", [
          { _tag: "Bytes", mime: "image/png", bytes },
          { _tag: "Url", url, mime: "image/png", needsAuth: false }
        ]),
        MockVendor.jobFails("CONTENT", "not this", 0)
      ]
    }
  })
  const client = createFalClient({
    credentials: server.key,
    fetch: fetchAt(server, { "https://queue.fal.run": "", "https://fal.run": "/sync" })
  })
  const statuses = new Set<string>()
  const { data } = await client.subscribe(model, {
    input: { prompt },
    pollInterval: 5,
    onQueueUpdate: ({ status }) => void statuses.add(status)
  })
  const { images } = data as { images: Array<{ url: string }> }
  const own = images[0]!.url.replace("https://queue.fal.run", server.url)
  assert.deepEqual(new Uint8Array(await (await fetch(own)).arrayBuffer()), bytes)
  assert.strictEqual(images[1]?.url, url)
  assert.include([...statuses], "COMPLETED")
  const failed = client.subscribe(model, { input: { prompt }, pollInterval: 5 })
  assert.include(
    JSON.stringify(await failed.catch(({ body }: { body: unknown }) => body)),
    "not this"
  )
})

it("replicate at a vendor server runs a model, and verifies its webhook", async () => {
  await using server = await startVendorServer("replicate", {
    script: [MockVendor.result("20 millis"), MockVendor.jobFails("FAILED", "CUDA is gone", 0)]
  })
  const port = await freePort()
  const receiver = createServer()
  const received = new Promise<Request>((resolve) => {
    receiver.on("request", async (request, response) => {
      const chunks = await Array.fromAsync(request)
      response.end()
      const headers = request.headers as Record<string, string>
      const init = { method: "POST", headers, body: Buffer.concat(chunks) }
      resolve(new Request(`http://127.0.0.1:${port}/`, init))
    })
  })
  receiver.listen(port, "127.0.0.1")
  const client = new Replicate({
    auth: server.key,
    baseUrl: `${server.url}/v1`,
    useFileOutput: false
  })
  const model = "black-forest-labs/flux-schnell"
  const webhook = `http://127.0.0.1:${port}/`
  const output = (await client.run(model, { input: { prompt }, webhook })) as Array<string>
  assert.deepEqual(Buffer.from(await (await fetch(output[0]!)).arrayBuffer()), pixel)
  const { key } = await client.webhooks.default.secret.get()
  assert.strictEqual(key, signing.replicate)
  const callback = await received
  receiver.close()
  assert.isTrue(await validateWebhook(callback.clone(), key))
  assert.strictEqual(((await callback.json()) as { status: string }).status, "succeeded")
  assert.include(
    String(await client.run(model, { input: { prompt } }).catch(String)),
    "CUDA is gone"
  )
})

it("@ai-sdk/alibaba at a vendor server makes a video", async () => {
  await using server = await startVendorServer("dashscope", {
    script: { "wan2.6-t2v": [videoAfter("20 millis")] }
  })
  const provider = createAlibaba({ apiKey: server.key, videoBaseURL: server.url })
  const made = await generateVideo({
    model: videoModel(provider.video("wan2.6-t2v")),
    prompt,
    poll: { intervalMs: 5 },
    download: videoDownload(server)
  })
  assert.deepEqual(new Uint8Array(made.video.uint8Array), bytes)
})

it("a gateway runs a task at each of them, even after a refusal, and calls each language model", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vendor-servers-"))
  const catalog = join(folder, "catalog.json")
  await writeFile(catalog, JSON.stringify(catalogOfFamilies))
  const names = ["openai", "anthropic", "gemini", "dashscope", "fal", "replicate"] as const
  const servers = new Map<string, VendorServer>()
  for (const name of names) {
    servers.set(name, await startVendorServer(name, { answer: () => `${name} says hello` }))
  }
  try {
    const env: Record<string, string> = Object.assign(
      { CATALOG_FILE: catalog },
      ...Array.from(servers.values(), (it) => it.env)
    )
    await using gateway = await GatewayProcess.start({ env })
    servers.get("fal")?.failNext(MockVendor.refused("RETRYABLE", "busy"))
    servers.get("replicate")?.failNext(MockVendor.refused("RETRYABLE", "busy"), "query")
    await Promise.all(
      families.map(async (family) => {
        const body = bodyOf(family, "A lighthouse")
        const created = await gateway.call("POST", pathOf(family), body, {
          prefer: "wait=30"
        })
        const { json, text } = created
        assert.strictEqual(json.task_info?.status, "completed", `${family.adapter}: ${text}`)
        assert.strictEqual(json[family.result].length, 1)
      })
    )
    const messages = [{ role: "user", content: "Where to?" }]
    const calls: ReadonlyArray<readonly [string, string, object]> = [
      ["openai", "openai/v1/chat/completions", { model: "gpt-4o", messages }],
      [
        "anthropic",
        "anthropic/v1/messages",
        { model: "claude-sonnet-4-5", max_tokens: 50, messages }
      ],
      [
        "gemini",
        "google/v1beta/models/gemini-2.5-flash:generateContent",
        { contents: [{ role: "user", parts: [{ text: "Where to?" }] }] }
      ]
    ]
    for (const [vendor, path, body] of calls) {
      const answer = await gateway.call("POST", `/vendors/${path}`, body, {
        "anthropic-version": "2023-06-01"
      })
      assert.strictEqual(answer.status, 200, answer.text)
      assert.include(answer.text, `${vendor} says hello`)
      assert.match(servers.get(vendor)!.requests.at(-1)!.path, /completions|messages|flash/u)
    }
  } finally {
    for (const server of servers.values()) await server.stop()
    await rm(folder, { recursive: true })
  }
})
