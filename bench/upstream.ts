/**
 * The upstream of the benchmark: a small chat response, or a stream of 200 events; slow if the prompt asks for it.
 * Embeddings are 20 MiB.
 */
import { createServer } from "node:http"

const body = Buffer.from(
  JSON.stringify({
    id: "chatcmpl-00000000",
    object: "chat.completion",
    created: 1,
    model: "gpt-4o",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "word ".repeat(40) },
        finish_reason: "stop"
      }
    ],
    usage: { prompt_tokens: 20, completion_tokens: 40, total_tokens: 60 }
  })
)
const event = (content: string) =>
  `data: ${JSON.stringify({ id: "chatcmpl-00000000", object: "chat.completion.chunk", created: 1, model: "gpt-4o", choices: [{ index: 0, delta: { content }, finish_reason: null }], usage: null })}\n\n`
const usage = Buffer.from(
  `data: ${JSON.stringify({ id: "chatcmpl-00000000", object: "chat.completion.chunk", created: 1, model: "gpt-4o", choices: [], usage: { prompt_tokens: 20, completion_tokens: 200, total_tokens: 220 } })}\n\ndata: [DONE]\n\n`
)
const firstWord = Buffer.from(event("word "))
const splitAt = firstWord.length >> 1

const vector = Array.from({ length: 1536 }, (_, index) => index / 7)
const embedding = `{"object":"embedding","index":0,"embedding":${JSON.stringify(vector)}},`
const embeddings = Buffer.from(
  `{"object":"list","data":[${embedding.repeat((20 * 1024 * 1024) / embedding.length)}{}],"model":"text-embedding-3-large","usage":{"prompt_tokens":20,"total_tokens":20}}`
)

let answers = 0
/** Each response has a different id, because a peer stores one row per id. */
const numbered = (...templates: ReadonlyArray<Buffer>) => {
  answers += 1
  const digits = String(answers % 1e8).padStart(8, "0")
  return templates.map((template) => {
    const copy = Buffer.from(template)
    copy.write(digits, copy.indexOf("00000000"))
    return copy
  })
}

// One peer fails a call on a connection that an idle upstream has closed
createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  let text = ""
  request.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")))
  request.on("end", () => {
    if (request.url?.endsWith("/embeddings") === true) {
      response.writeHead(200, { "content-type": "application/json" })
      response.end(embeddings)
      return
    }
    // One peer writes a space after the colon
    if (!/"stream": ?true/u.test(text)) {
      const answer = () => {
        response.writeHead(200, {
          "content-type": "application/json",
          "content-length": body.length
        })
        response.end(numbered(body)[0])
      }
      if (text.includes("take your time")) setTimeout(answer, 300)
      else answer()
      return
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    // `held open` streams stay open after their first event, for the memory figure
    const isHeld = text.includes("held open")
    const [word, last] = numbered(firstWord, usage) as [Buffer, Buffer]
    response.write(word)
    if (isHeld) return
    let sent = 1
    // Bursts of ten events; the last event of a burst is split and continues in the next one
    const next = () => {
      if (sent > 1) response.write(word.subarray(splitAt))
      for (let i = 0; i < 9; i += 1) response.write(word)
      sent += 10
      if (sent > 200) {
        response.end(last)
        return
      }
      response.write(word.subarray(0, splitAt))
      setImmediate(next)
    }
    setImmediate(next)
  })
}).listen(Number(process.env.PORT), "127.0.0.1")
