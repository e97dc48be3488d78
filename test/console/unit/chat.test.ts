import { assert, describe, it } from "vitest"
import { dialectOf, eventsOf, failureIn } from "../../../src/console/pages/playground/chat.ts"

const streamOf = (pieces: ReadonlyArray<Uint8Array>) =>
  new ReadableStream<Uint8Array>({
    start: (controller) => {
      pieces.forEach((it) => controller.enqueue(it))
      controller.close()
    }
  })

const readAll = async (pieces: ReadonlyArray<Uint8Array>) => {
  const found: Array<unknown> = []
  for await (const event of eventsOf(streamOf(pieces))) found.push(event)
  return found
}

describe("a chat in the playground", () => {
  it("reads the same events however the stream's bytes are split", async () => {
    const text = `event: x\r\ndata: {"a":"雪"}\r\n\r\n: comment\n\ndata: {"b":\ndata: 2}\n\ndata: [DONE]\n\ndata: {"c":3}`
    const bytes = new TextEncoder().encode(text)
    const expected = [{ a: "雪" }, { b: 2 }, { c: 3 }]
    assert.deepStrictEqual(await readAll([bytes]), expected)
    assert.deepStrictEqual(await readAll([...bytes].map((it) => Uint8Array.of(it))), expected)
  })

  it("reads the text in each vendor's events, and nothing else", () => {
    const pieces = [
      ["/vendors/openai/v1/chat/completions", { choices: [{ delta: { content: "a" } }] }],
      ["/vendors/anthropic/v1/messages", { delta: { text: "a" } }],
      [
        "/vendors/google/v1beta/models/m:generateContent",
        { candidates: [{ content: { parts: [{ text: "a" }] } }] }
      ]
    ] as const
    for (const [path, event] of pieces) {
      const dialect = dialectOf(path)!
      assert.strictEqual(dialect.piece(event), "a", path)
      for (const other of [null, 1, "x", [], {}, { choices: [] }, { delta: null }]) {
        assert.strictEqual(dialect.piece(other), "", path)
      }
      const { body, path: asked } = dialect.request({
        path,
        model: "m",
        system: "s",
        messages: [{ role: "user", text: "q" }],
        maxTokens: 7
      })
      assert.match(JSON.stringify(body), /"s".*"q".*7|7.*"s".*"q"/u)
      assert.isTrue(asked.includes("stream") || JSON.stringify(body).includes('"stream":true'))
    }
    assert.isUndefined(dialectOf("/vendors/openai/v1/embeddings"))
    assert.strictEqual(failureIn({ error: { message: "no" } }), "no")
    assert.isUndefined(failureIn({ error: null }))
  })

  it("sends pictures in each vendor's format, and messages without pictures as text", () => {
    const contentOf = (path: string, text: string) => {
      const { body } = dialectOf(path)!.request({
        path,
        model: "m",
        system: "",
        messages: [
          { role: "user", text, pictures: [{ mediaType: "image/png", data: "AAAA" }] },
          { role: "assistant", text: "a" },
          { role: "user", text: "b", pictures: [] }
        ],
        maxTokens: 7
      })
      const { contents, messages } = body as Record<"contents" | "messages", unknown>
      return contents ?? messages
    }
    const openAi = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
    const source = { type: "base64", media_type: "image/png", data: "AAAA" }
    const anthropic = { type: "image", source }
    for (const [path, part] of [
      ["/vendors/openai/v1/chat/completions", openAi],
      ["/vendors/anthropic/v1/messages", anthropic]
    ] as const) {
      assert.deepStrictEqual(contentOf(path, "q"), [
        { role: "user", content: [part, { type: "text", text: "q" }] },
        { role: "assistant", content: "a" },
        { role: "user", content: "b" }
      ])
      assert.deepStrictEqual((contentOf(path, "") as Array<unknown>)[0], {
        role: "user",
        content: [part]
      })
    }
    const gemini = "/vendors/google/v1beta/models/m:generateContent"
    const inlineData = { mimeType: "image/png", data: "AAAA" }
    assert.deepStrictEqual(contentOf(gemini, "q"), [
      { role: "user", parts: [{ inlineData }, { text: "q" }] },
      { role: "model", parts: [{ text: "a" }] },
      { role: "user", parts: [{ text: "b" }] }
    ])
    assert.deepStrictEqual((contentOf(gemini, "") as Array<unknown>)[0], {
      role: "user",
      parts: [{ inlineData }]
    })
  })
})
