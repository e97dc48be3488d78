import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import type { UsageProtocol } from "../../../src/catalog/OpenRoutes.ts"
import { mergeUsage, responderOf, usageOf } from "../../../src/catalog/Usage.ts"
import { DocumentMeter } from "../../../src/passthrough/streams/DocumentMeter.ts"

/** Reads a document in pieces of this size. */
const metered = (protocol: UsageProtocol, document: unknown, size: number, indent?: number) => {
  const meter = new DocumentMeter(protocol)
  const bytes = Buffer.from(JSON.stringify(document, undefined, indent))
  const passed: Array<Buffer> = []
  for (let at = 0; at < bytes.length; at += size) {
    assert.isFalse(meter.isFinal)
    passed.push(meter.push(bytes.subarray(at, at + size)))
  }
  passed.push(meter.flush())
  assert.isTrue(Buffer.concat(passed).equals(bytes))
  return meter
}

const openAi = {
  prompt_tokens: 7,
  completion_tokens: 9,
  prompt_tokens_details: { cached_tokens: 3 }
}
const searched = { webSearchQueries: ["a", "b"], groundingChunks: [{ web: { uri: "x" } }] }
const mapped = { webSearchQueries: [], groundingChunks: [{ maps: { uri: "x" } }] }
const geminiFigures = (tokens: number) => ({
  promptTokenCount: 5,
  candidatesTokenCount: tokens,
  candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: tokens }]
})

/** The documents of each protocol, whose output is the given JSON. */
const documents: ReadonlyArray<readonly [UsageProtocol, (output: unknown) => unknown]> = [
  [
    "openai-chat",
    (output) => ({ choices: [{ logprobs: output }], model: "gpt-4o", usage: openAi, extra: output })
  ],
  ["openai-embeddings", (output) => ({ data: [output], model: "e", usage: { prompt_tokens: 4 } })],
  [
    "openai-responses",
    (output) => ({
      model: "gpt-4o",
      output: [
        { type: "web_search_call", action: { type: "search", sources: [output] } },
        { type: "code_interpreter_call", container_id: "c1", outputs: [output] },
        { type: "message", content: [output] }
      ],
      usage: { input_tokens: 4, output_tokens: 6 }
    })
  ],
  [
    "anthropic-messages",
    (output) => ({
      content: [output],
      model: "claude",
      usage: {
        input_tokens: 4,
        output_tokens: 5,
        server_tool_use: { web_search_requests: 2 },
        iterations: [{ type: "compaction", input_tokens: 9, output_tokens: 1 }]
      }
    })
  ],
  [
    "gemini-generate",
    (output) => ({
      candidates: [
        { content: { parts: [output] }, groundingMetadata: searched },
        { content: { parts: [output] }, groundingMetadata: mapped }
      ],
      usageMetadata: geminiFigures(8),
      modelVersion: "gemini"
    })
  ],
  [
    "gemini-generate",
    (output) => [
      { candidates: [{ content: { parts: [output] } }], usageMetadata: geminiFigures(3) },
      {
        candidates: [{ content: { parts: [output] }, groundingMetadata: searched }],
        usageMetadata: geminiFigures(8),
        modelVersion: "gemini"
      }
    ]
  ],
  ["rerank", (output) => ({ results: [output], meta: { billed_units: { search_units: 2 } } })],
  ["openai-transcription", (output) => ({ duration: 4.5, segments: [output], text: "a" })]
]

describe("a large document", () => {
  it("has the figures, tools and model of the whole document, however it is split and spaced", () => {
    const long = fc.constantFrom('a"\\'.repeat(300), "\\".repeat(301), "é".repeat(400))
    const output = fc.oneof(fc.jsonValue({ maxDepth: 5 }), long, fc.array(fc.double()))
    fc.assert(
      fc.property(
        fc.constantFrom(...documents),
        output,
        fc.integer({ min: 1, max: 700 }),
        fc.constantFrom(undefined, 2),
        ([protocol, documentOf], output, size, indent) => {
          const document = JSON.parse(JSON.stringify(documentOf(output)))
          const meter = metered(protocol, document, size, indent)
          const expected = usageOf(protocol, document)
          assert.isDefined(expected)
          assert.isDefined(meter.usage)
          // Merged figures also have kinds that are zero
          const merged = mergeUsage(meter.usage, meter.usage)
          assert.deepStrictEqual(merged, mergeUsage(expected, expected))
          assert.strictEqual(meter.responder, responderOf(protocol, document))
          assert.isTrue(meter.isFinal)
        }
      )
    )
  })

  it("has no figures that its output contains", () => {
    const output = { usage: { prompt_tokens: 1 }, usageMetadata: { promptTokenCount: 1 } }
    const chat = metered("openai-chat", { choices: [output] }, 10)
    assert.isUndefined(chat.usage)
    assert.isFalse(chat.isFinal)
    const parts = { candidates: [{ content: { parts: [output] } }] }
    assert.isUndefined(metered("gemini-generate", [parts, parts], 10).usage)
  })

  it("without figures is counted by its bytes", () => {
    assert.strictEqual(metered("openai-chat", { choices: ["a".repeat(86)] }, 7).tokens, 26)
  })
})
