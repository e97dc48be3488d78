import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import { listen, stop } from "./localServer.ts"
import { chatCompletion, chatEvents } from "./mockOpenAi.ts"
import { pause } from "./until.ts"
import { pixel } from "./upstreams/Upstream.ts"

/**
 * DashScope, Gemini and OpenAI on one port. The prompt sets how long a response takes in milliseconds, such as
 * `slow=3000`; with `hang` there is no response. Asynchronous jobs run forever.
 */
export const startSlowVendor = async () => {
  const vendor = { submits: 0, jobs: 0, calls: 0, polls: 0 }
  const server = createServer((request, response) => void respond(request, response, vendor))
  const port = await listen(server)
  return {
    seen: vendor,
    dashScope: {
      DASHSCOPE_API_KEY: "sk-vendor",
      DASHSCOPE_BASE_URL: `http://127.0.0.1:${port}/api/v1`
    },
    gemini: {
      GEMINI_API_KEY: "sk-vendor",
      GEMINI_BASE_URL: `http://127.0.0.1:${port}/v1beta`
    },
    openAi: {
      OPENAI_API_KEY: "sk-vendor",
      OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`
    },
    [Symbol.asyncDispose]: () => stop(server)
  }
}

type Counts = Record<"submits" | "jobs" | "calls" | "polls", number>

const respond = async (request: IncomingMessage, response: ServerResponse, seen: Counts) => {
  const url = request.url ?? ""
  let body = ""
  for await (const chunk of request) body += String(chunk)
  const json = (value: unknown) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(JSON.stringify(value))
  }
  if (url.startsWith("/media/")) {
    response.writeHead(200, { "content-type": "image/png", "content-length": pixel.length })
    return response.end(pixel)
  }
  if (url.includes("/tasks/")) {
    seen.polls += 1
    const task_id = url.split("/").at(-1)
    return json({ request_id: "r", output: { task_id, task_status: "RUNNING" } })
  }
  const millis = Number(/slow=(\d+)/u.exec(body)?.[1] ?? 0)
  if (url.includes(":generateContent")) {
    seen.submits += 1
    await pause(millis)
    const inlineData = { mimeType: "image/png", data: pixel.toString("base64") }
    const content = { role: "model", parts: [{ inlineData }] }
    return json({ candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata: {} })
  }
  if (url.includes("/aigc/")) {
    seen.jobs += 1
    return json({ output: { task_status: "PENDING", task_id: `job-${seen.jobs}` } })
  }
  seen.calls += 1
  if (body.includes("hang")) return
  if (!body.includes('"stream":true')) {
    await pause(millis)
    return json(chatCompletion("gpt-4o"))
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  const events = chatEvents(["a", "b", "c", "d", "e", "f"], true)
  for (const event of events) {
    response.write(event)
    await pause(millis / events.length)
  }
  response.end()
}
