import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { UsageProtocol } from "../../../src/catalog/OpenRoutes.ts"
import { usageOf } from "../../../src/catalog/Usage.ts"
import { LongEvent } from "../../../src/passthrough/streams/LongEvent.ts"
import { StreamMeter } from "../../../src/passthrough/streams/StreamMeter.ts"

const piecesOf = (bytes: Buffer, size: number): ReadonlyArray<Buffer> =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size)
  )

/** What a client receives of a stream that arrives in pieces. */
const through = (meter: StreamMeter, text: string, size = 16_384): string => {
  const relayed = piecesOf(Buffer.from(text), size).map((piece) => meter.push(piece))
  return Buffer.concat([...relayed, meter.flush()]).toString()
}

/** Three MiB of a response that contains text like an event's. */
const long = 'said \\"usage\\": {"input_tokens": 1} \n\u{1f600} [{'.repeat(70_000)

/** Each vendor's last event, which is as large as its response: docs/reference/passthrough.md#usage. */
const lastEvents: { readonly [protocol in UsageProtocol]: unknown } = {
  "openai-chat": {
    choices: [{ delta: { content: long } }],
    usage: { prompt_tokens: 7, completion_tokens: 9 }
  },
  "openai-embeddings": { data: [long], usage: { prompt_tokens: 7, completion_tokens: 9 } },
  "openai-responses": {
    type: "response.completed",
    response: {
      instructions: long,
      output: [{ content: [{ text: long }] }],
      text: { format: { schema: { properties: { usage: { input_tokens: 5 } } } } },
      usage: {
        input_tokens: 7,
        input_tokens_details: { cached_tokens: 3 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 2 }
      },
      metadata: {}
    }
  },
  "openai-speech": {
    type: "speech.audio.done",
    audio: long,
    usage: { input_tokens: 7, output_tokens: 9 }
  },
  "openai-transcription": {
    type: "transcript.text.done",
    text: long,
    usage: { input_tokens: 7, output_tokens: 9 }
  },
  rerank: { results: [long], usage: { total_tokens: 7 } },
  "anthropic-messages": {
    type: "message_delta",
    delta: { stop_sequence: long },
    usage: { input_tokens: 7, output_tokens: 9 }
  },
  "gemini-generate": {
    candidates: [{ content: { parts: [{ inlineData: { data: long } }] } }],
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 9 }
  },
  "gemini-embeddings": {
    embedding: { values: [long] },
    usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 9 }
  }
}

/** A reranker has no stream and no output. */
const protocols = (Object.keys(lastEvents) as ReadonlyArray<UsageProtocol>).filter(
  (protocol) => protocol !== "rerank"
)

describe("the meter of a stream", () => {
  it.each(protocols)(
    "reads the usage of an ordinary event, in pieces of any size (%s)",
    (protocol) => {
      const event = JSON.stringify(lastEvents[protocol]).replaceAll(JSON.stringify(long), '"Hi"')
      for (const size of [1, 7, 16_384]) {
        const meter = new StreamMeter(protocol, false)
        through(meter, `data: ${event}\r\n\r\ndata: [DONE]\n\n`, size)
        assert.strictEqual(meter.usage?.outputTokens, 9)
      }
    }
  )

  it("reads figures in lists, and the model that responded, of an event whatever its size", () => {
    const events = [
      [
        "gemini-generate",
        {
          candidates: [{ content: { parts: [{ inlineData: { data: long } }] } }],
          usageMetadata: {
            promptTokenCount: 7,
            candidatesTokenCount: 9,
            candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 8 }]
          },
          modelVersion: "m"
        }
      ],
      [
        "anthropic-messages",
        {
          type: "message_delta",
          delta: { stop_sequence: long, list: [{ type: "fallback_message", model: "not it" }] },
          usage: {
            iterations: [{ type: "message" }, { type: "fallback_message", model: "m" }],
            output_tokens: 9
          }
        }
      ]
    ] as const
    for (const [protocol, value] of events) {
      const meter = new StreamMeter(protocol, false)
      through(meter, `data: ${JSON.stringify(value)}\n\n`)
      assert.deepStrictEqual(meter.usage, usageOf(protocol, value))
      assert.strictEqual(meter.responder, "m")
    }
  })

  it.each(protocols)("reads the usage of an event whatever its size (%s)", (protocol) => {
    const small = 'data: {"choices":[],"usage":null}\n\n'
    for (const newline of ["\n", "\r\n"]) {
      const last = JSON.stringify(lastEvents[protocol])
      const text = `${small}event: last${newline}data: ${last}${newline}${newline}data: [DONE]\n\n`
      const meter = new StreamMeter(protocol, false)
      assert.strictEqual(through(meter, text), text)
      const usage = usageOf(protocol, lastEvents[protocol])
      assert.strictEqual(usage?.outputTokens, 9)
      assert.deepStrictEqual(meter.usage, usage)
      assert.isFalse(meter.failed)
    }
  })

  it("reads it at the end of a stream that ends without a blank line", () => {
    const meter = new StreamMeter("openai-responses", false)
    const text = `data: ${JSON.stringify(lastEvents["openai-responses"])}`
    assert.strictEqual(through(meter, text), text)
    assert.strictEqual(meter.usage?.inputTokens, 7)
  })

  it("hides the usage chunk after a large event, and nothing of that event", () => {
    const large = `data: ${JSON.stringify({ choices: [{ delta: { content: long } }], usage: null })}\n\n`
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 7 } })}\n\n`
    const meter = new StreamMeter("openai-chat", true)
    assert.strictEqual(
      through(meter, `${large}${usage}data: [DONE]\n\n`),
      `${large}data: [DONE]\n\n`
    )
    assert.strictEqual(meter.usage?.inputTokens, 7)
  })

  it("reads a failure that is reported in a large event", () => {
    const meter = new StreamMeter("openai-responses", false)
    const failed = { type: "response.failed", response: { instructions: long } }
    through(meter, `data: ${JSON.stringify(failed)}\n\n`)
    assert.isTrue(meter.failed)
  })
})

describe("a long event", () => {
  it("has the usage that the whole event has, however it is split", () => {
    const json = fc.jsonValue({ maxDepth: 6, noUnicodeString: false })
    const event = fc.record({ before: json, usage: json, response: json, after: json })
    fc.assert(
      fc.property(event, fc.integer({ min: 1, max: 50 }), (value, size) => {
        value.response = { large: [value.before, long.slice(0, 2000)], usage: { input_tokens: 4 } }
        const kept = new LongEvent()
        const bytes = Buffer.from(`data: ${JSON.stringify(value)}\n\nnext`)
        const ends = piecesOf(bytes, size).map((piece) => kept.push(piece))
        const end = ends.findIndex((at) => at > 0)
        assert.strictEqual(end * size + (ends[end] ?? 0), bytes.length - "next".length)
        const whole = new LongEvent()
        whole.push(bytes)
        const read: unknown = JSON.parse(whole.text.slice("data: ".length))
        for (const protocol of protocols) {
          assert.deepStrictEqual(usageOf(protocol, read), usageOf(protocol, value))
        }
      })
    )
  })

  it("keeps little of an event that never ends", () => {
    const event = new LongEvent()
    for (const endless of ['data: {"a":"', "x", '","b":[', "[1]", '],"c":1', "{", "1"]) {
      const piece = Buffer.from(endless.length === 1 ? endless.repeat(1_000_000) : endless)
      for (let round = 0; round < 3; round += 1) event.push(piece)
    }
    assert.isBelow(event.text.length, 100_000)
  })
})
