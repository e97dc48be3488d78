import { Effect } from "effect"
import OpenAI, { BadRequestError, toFile } from "openai"
import { assert, describe, it } from "vitest"
import { inspectAudio } from "../../../src/catalog/media/Audio.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** docs/reference/vendors.md#sandbox: sound, moderations and reranking without a vendor. */

const gateway = await gatewayOfTests({})
const openai = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.origin}/v1`, maxRetries: 0 })

const said = { model: "tts-1", input: "A short sentence for a test.", voice: "alloy" }

const secondsOf = async (bytes: Buffer, format: "WAV" | "MP3") => {
  const info = await Effect.runPromise(
    inspectAudio(bytes, {
      kind: "audio",
      formats: [format],
      bytesMax: 1e7,
      secondsMin: 0,
      secondsMax: 60
    })
  )
  assert.equal(info.format, format)
  return info.seconds
}

describe("speech of the sandbox", () => {
  it.each([
    ["wav", "audio/wav", "WAV"],
    ["mp3", "audio/mpeg", "MP3"]
  ] as const)("has the format %s", async (response_format, type, format) => {
    const response = await openai.audio.speech.create({ ...said, response_format })
    assert.equal(response.headers.get("content-type"), type)
    assert.equal(response.headers.get("x-service-sandbox"), "true")
    const bytes = Buffer.from(await response.arrayBuffer())
    assert.closeTo(await secondsOf(bytes, format), said.input.length / 15, 0.1)
  })

  it("is mp3 unless a format is named, and is the same for the same text", async () => {
    const [a, b] = await Promise.all([1, 2].map(() => openai.audio.speech.create(said)))
    assert.deepEqual(await a!.bytes(), await b!.bytes())
    await secondsOf(
      Buffer.from(await (await openai.audio.speech.create(said)).arrayBuffer()),
      "MP3"
    )
  })

  it("is available as pcm, and as events with usage", async () => {
    const pcm = await openai.audio.speech.create({ ...said, response_format: "pcm" })
    const samples = Buffer.from(await pcm.arrayBuffer())
    assert.isAbove(samples.length, 48_000)
    const events = await openai.audio.speech.create({
      ...said,
      model: "gpt-4o-mini-tts",
      response_format: "pcm",
      stream_format: "sse"
    })
    const all = (await events.text())
      .split("\n\n")
      .filter((event) => event !== "")
      .map((event) => JSON.parse(event.slice("data: ".length)))
    const sound = all.flatMap(({ audio }) =>
      audio === undefined ? [] : [Buffer.from(audio, "base64")]
    )
    assert.isTrue(Buffer.concat(sound).equals(samples))
    assert.equal(all.at(-1).type, "speech.audio.done")
    await gateway.settled()
    const [call] = await gateway.calls()
    assert.equal(call?.usage?.["outputTokens"], all.at(-1).usage.output_tokens)
    assert.equal(call?.usage?.["counted"], false)
  })

  it("is refused in other formats, without a charge", async () => {
    const refused = await openai.audio.speech.create({ ...said, response_format: "opus" }).then(
      () => undefined,
      (error: unknown) => error
    )
    assert.instanceOf(refused, BadRequestError)
    assert.include(refused.message, "The simulator offers only the formats mp3, wav, pcm")
    await gateway.settled()
    assert.equal((await gateway.calls())[0]?.captured, 0n)
  })
})

describe("a transcription of the sandbox", () => {
  const file = async () => {
    const speech = await openai.audio.speech.create({ ...said, response_format: "wav" })
    return toFile(await speech.arrayBuffer(), "speech.wav")
  }
  const text =
    "This transcript comes from the built-in simulator: set a vendor key to reach the real model."

  it("has a text, as a stream too, and the usage of its model", async () => {
    const ask = { file: await file(), model: "gpt-4o-transcribe" }
    const whole = await openai.audio.transcriptions.create(ask)
    assert.equal(whole.text, text)
    await gateway.settled()
    const [call] = await gateway.calls()
    assert.equal(call?.model, "gpt-4o-transcribe")
    assert.equal(call?.usage?.["audioInputTokens"], 19)
    const stream = await openai.audio.transcriptions.create({ ...ask, stream: true })
    let streamed = ""
    for await (const event of stream) {
      if (event.type === "transcript.text.delta") streamed += event.delta
    }
    assert.equal(streamed, text)
  })

  it("has several formats, and may be a translation", async () => {
    const whisper = { file: await file(), model: "whisper-1" }
    const verbose = await openai.audio.transcriptions.create({
      ...whisper,
      response_format: "verbose_json"
    })
    assert.closeTo(Number(verbose.duration), said.input.length / 15, 0.1)
    assert.equal(verbose.segments?.[0]?.text, text)
    assert.isUndefined(verbose.words)
    const timed = await openai.audio.transcriptions.create({
      ...whisper,
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"]
    })
    assert.equal(timed.words?.map(({ word }) => word).join(" "), text)
    assert.closeTo(Number(timed.words?.at(-1)?.end), Number(timed.duration), 0.01)
    const srt = await openai.audio.transcriptions.create({ ...whisper, response_format: "srt" })
    assert.match(String(srt), /^1\n00:00:00,000 --> 00:00:01,8\d\d\n/u)
    const vtt = await openai.audio.translations.create({ ...whisper, response_format: "vtt" })
    assert.match(String(vtt), /^WEBVTT/u)
    const refused = await openai.audio.transcriptions
      .create({ ...whisper, response_format: "diarized_json" })
      .catch((error: unknown) => error)
    assert.instanceOf(refused, BadRequestError)
  })
})

describe("the sandbox", () => {
  it("names the speaker if the model does, whole and as a stream", async () => {
    const speech = await openai.audio.speech.create({ ...said, response_format: "wav" })
    const ask = {
      file: await toFile(await speech.arrayBuffer(), "speech.wav"),
      model: "gpt-4o-transcribe-diarize",
      response_format: "diarized_json",
      chunking_strategy: "auto"
    } as const
    const whole = Object(await openai.audio.transcriptions.create(ask))
    const { duration, segments, text } = whole
    assert.deepEqual(segments, [
      { type: "transcript.text.segment", id: "seg_0", start: 0, end: duration, speaker: "A", text }
    ])
    const events = []
    for await (const event of await openai.audio.transcriptions.create({ ...ask, stream: true })) {
      events.push(event)
    }
    assert.deepEqual(
      events.filter(({ type }) => type === "transcript.text.segment"),
      segments
    )
  })

  it("moderates without flagging anything", async () => {
    const { results } = await openai.moderations.create({ input: ["a", "b"] })
    assert.deepEqual(
      results.map(({ flagged }) => flagged),
      [false, false]
    )
  })

  it("ranks documents by the words that they share with the query", async () => {
    const documents = ["A stone is heavy.", { text: "A lamp gives light to a room." }]
    const ask = async (path: string, model: string, more = {}) =>
      (await gateway.post(path, { model, query: "light in a room", documents, ...more })).json()
    assert.deepInclude(await ask("/v1/rerank", "jina-reranker-v3", { top_n: 1 }), {
      results: [
        { index: 1, relevance_score: 0.75, document: { text: "A lamp gives light to a room." } }
      ]
    })
    assert.deepInclude(await ask("/vendors/cohere/v2/rerank", "rerank-v4.0-fast"), {
      results: [
        { index: 1, relevance_score: 0.75 },
        { index: 0, relevance_score: 0.25 }
      ],
      meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } }
    })
  })
})
