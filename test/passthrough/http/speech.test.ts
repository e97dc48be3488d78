import { assert, describe, it } from "vitest"
import { hertz, mp3Of, samplesOf } from "../../../src/sandbox/media/Sound.ts"
import { wavOf } from "../../../src/sandbox/media/WavFile.ts"
import { catalogFile } from "../../support/aliases.ts"
import { events, json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"

/** docs/reference/wallet.md#speech-transcription-and-reranking */

const path = "/v1/audio/speech"
const said = { model: "tts-1", input: "Hello, world!", voice: "alloy" }
const mini = { ...said, model: "gpt-4o-mini-tts" }

const vendor = await upstreamOfTests(mockVendor(() => {}))
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor-openai",
  OPENAI_BASE_URL: vendor.origin,
  CATALOG_FILE: catalogFile({
    aliases: [{ alias: "voice", to: [{ model: "openai/tts-1-hd" }, { model: "openai/tts-1" }] }]
  })
})

const sends = (bytes: Buffer, type = "audio/mpeg") => {
  vendor.script = (_, response) => {
    response.writeHead(200, { "content-type": type })
    response.end(bytes)
  }
}

describe("speech", () => {
  it("is relayed byte for byte, and the characters of its text are charged", async () => {
    const sound = mp3Of("Hello, world!")
    sends(sound)
    const response = await gateway.post(path, { ...said, input: "Grüße 👋" })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get("content-type"), "audio/mpeg")
    assert.isTrue(Buffer.from(await response.arrayBuffer()).equals(sound))
    const call = await gateway.newest()
    // 7 code points at 1500 credits a million
    assert.equal(call.captured, 10_500n)
    assert.equal(call.held, 10_500n)
    assert.deepInclude(call.usage, { characters: 7, counted: true })
    assert.equal(call.route, "POST /v1/audio/speech")
  })

  it("is charged for every character of a long text that arrives in chunks", async () => {
    sends(mp3Of("a"))
    const input = "ü".repeat(4096)
    const text = JSON.stringify({ ...said, input })
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(text))
        controller.close()
      }
    })
    const response = await gateway.post(path, text, {}, { body, duplex: "half" })
    assert.equal(response.status, 200, await response.clone().text())
    await response.arrayBuffer()
    assert.equal((await gateway.newest()).captured, 4096n * 1500n)
    const more = await gateway.post(path, { ...said, input: `${input}ü` })
    assert.deepInclude(await jsonOf(more), {
      code: 2001,
      errors: [{ pointer: "#/input", detail: "Expected at most 4096 characters" }]
    })
  })

  it("arrives while it is generated", async () => {
    let finish = () => {}
    vendor.script = (_, response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" })
      response.write(mp3Of("a"))
      finish = () => response.end(mp3Of("b"))
    }
    const response = await gateway.post(path, said)
    const reader = response.body!.getReader()
    const first = await reader.read()
    assert.isAbove(first.value?.length ?? 0, 0)
    finish()
    while (!(await reader.read()).done) continue
    const call = await gateway.newest()
    assert.equal(call.captured, 19_500n)
    assert.isNumber(call.firstTokenMs)
  })

  it("is charged by the length of the sound if the model is charged by tokens", async () => {
    const wav = wavOf(samplesOf("a".repeat(45)), hertz)
    {
      sends(wav, "audio/wav")
      await (await gateway.post(path, { ...mini, response_format: "wav" })).arrayBuffer()
      const call = await gateway.newest()
      // 3 seconds at 1250 tokens a minute
      assert.equal(call.usage?.["outputTokens"], 63)
      assert.equal(call.usage?.["counted"], true)
      const input = BigInt(Number(call.usage?.["inputTokens"]))
      assert.equal(call.captured, input * 60n + 63n * 1200n)
      assert.isTrue(call.held > call.captured)
    }
  })

  it("is charged by the usual speaking time if the format does not show the length", async () => {
    sends(Buffer.alloc(9000, 3), "application/octet-stream")
    await (await gateway.post(path, { ...mini, input: "a".repeat(60) })).arrayBuffer()
    // 4 seconds
    assert.equal((await gateway.newest()).usage?.["outputTokens"], 84)
  })

  it("is charged by the vendor's figures if it consists of events", async () => {
    vendor.script = (_, response) =>
      events(response, [
        'data: {"type":"speech.audio.delta","audio":"AAAA"}\n\n',
        'data: {"type":"speech.audio.done","usage":{"input_tokens":14,"output_tokens":101}}\n\n'
      ])
    await (await gateway.post(path, { ...mini, stream_format: "sse" })).text()
    const call = await gateway.newest()
    assert.deepInclude(call.usage, { inputTokens: 14, outputTokens: 101, counted: false })
    assert.equal(call.captured, 14n * 60n + 101n * 1200n)
  })

  it("is charged in full if the client leaves, and not at all if the vendor breaks off", async () => {
    vendor.script = (_, response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" })
      response.write(mp3Of("a"))
    }
    const controller = new AbortController()
    const response = await gateway.post(path, said, {}, { signal: controller.signal })
    await response.body!.getReader().read()
    controller.abort()
    assert.equal((await gateway.newest()).captured, 19_500n)
    vendor.script = (_, response) => {
      response.writeHead(200, { "content-type": "audio/mpeg" })
      response.write(mp3Of("a"))
      setTimeout(() => response.destroy(), 50)
    }
    const broken = await gateway.post(path, said)
    await broken.arrayBuffer().then(
      () => assert.fail("the sound was whole"),
      () => undefined
    )
    const call = await gateway.newest()
    assert.equal(call.outcome, "released")
    vendor.script = (_, response) => json(response, 400, { error: { message: "no such voice" } })
    assert.equal((await gateway.post(path, said)).status, 400)
    assert.equal((await gateway.newest()).captured, 0n)
  })

  it("tries the models of an alias in turn, and charges the price of the one that spoke", async () => {
    const sound = mp3Of("a")
    vendor.script = (request, response) => {
      if (request.body.includes("tts-1-hd")) return json(response, 429, { error: {} })
      response.writeHead(200, { "content-type": "audio/mpeg" })
      response.end(sound)
    }
    const response = await gateway.post(path, { ...said, model: "voice" })
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    const call = await gateway.newest()
    assert.equal(call.model, "tts-1")
    assert.equal(call.captured, 19_500n)
    assert.equal(call.held, 39_000n)
  })

  it.each([
    [{ ...said, input: undefined }, "#/input"],
    [{ ...said, input: 7 }, "#/input"],
    [{ ...said, voice: { id: "voice_1" } }, "#/voice"],
    [{ ...said, stream_format: {} }, "#/stream_format"],
    [{ ...said, model: undefined }, "#/model"]
  ])("refuses what it cannot price: %j", async (body, pointer) => {
    const response = await gateway.post(path, body)
    assert.equal(response.status, 400)
    const { errors } = (await response.json()) as { errors: ReadonlyArray<{ pointer: string }> }
    assert.deepEqual(
      errors.map((it) => it.pointer),
      [pointer]
    )
    assert.lengthOf(vendor.seen, 0)
  })

  it("refuses a model of another kind and names its route", async () => {
    const refusals = [
      [
        path,
        { ...said, model: "gpt-4o" },
        "gpt-4o speaks OpenAI Chat Completions: use /v1/chat/completions"
      ],
      [
        "/v1/chat/completions",
        { model: "tts-1", messages: [] },
        "tts-1 speaks OpenAI Speech: use /v1/audio/speech"
      ]
    ] as const
    for (const [route, body, detail] of refusals) {
      const response = await gateway.post(route, body)
      assert.equal(response.status, 404)
      assert.deepInclude(await jsonOf(response), { code: 2006, detail })
    }
    assert.lengthOf(vendor.seen, 0)
  })

  it("is refused above the request's maximum cost", async () => {
    const response = await gateway.post(path, said, { "x-service-max-cost": "0.01" })
    assert.equal(response.status, 402)
    assert.equal((await jsonOf(response)).code, 1103)
  })

  it("is limited to the key's models, of which an alias needs all", async () => {
    const fields = { name: "tts-1 only", allowed_models: ["tts-1"] }
    const created = await gateway.post("/manage/v1/api-keys", fields)
    const { key } = (await created.json()) as { key: string }
    const authorization = `Bearer ${key}`
    sends(mp3Of("a"))
    for (const body of [mini, { ...said, model: "voice" }]) {
      const refused = await gateway.post(path, body, { authorization })
      assert.equal(refused.status, 403)
      assert.equal((await jsonOf(refused)).code, 1004)
    }
    assert.lengthOf(vendor.seen, 0)
    const allowed = await gateway.post(path, said, { authorization })
    assert.equal(allowed.status, 200)
    await allowed.arrayBuffer()
    assert.equal((await gateway.newest()).captured, 19_500n)
  })
})

describe("moderations", () => {
  it("are free at the path of OpenAI's clients", async () => {
    vendor.script = (_, response) => json(response, 200, { id: "modr-1", results: [] })
    const before = (await gateway.calls()).length
    const response = await gateway.post("/v1/moderations", { input: "Hi" })
    assert.equal(response.status, 200)
    assert.isNull(response.headers.get("x-service-cost"))
    assert.equal(vendor.seen[0]?.url, "/v1/moderations")
    assert.lengthOf(await gateway.calls(), before)
  })
})
