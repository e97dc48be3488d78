import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call, json, runningGateway } from "../support/running.ts"

/** One rule for every route: a single mark before a body is skipped. */

const create = "/vendors/alibaba/v1/text-to-image-max/generation"
const message = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
const claude = { ...message, model: "claude-sonnet-4-5" }
const routes = [
  [`${create}?dry_run=true`, { prompt: "x" }, 200],
  [create, { prompt: "x" }, 202],
  ["/manage/v1/api-keys", { name: "a" }, 201],
  ["/v1/chat/completions", message, 200],
  ["/vendors/openai/v1/embeddings", { model: "text-embedding-3-small", input: "x" }, 200],
  ["/vendors/anthropic/v1/messages", claude, 200],
  ["/vendors/anthropic/v1/messages/count_tokens", claude, 200],
  [
    "/vendors/google/v1beta/models/gemini-2.5-flash:generateContent",
    { contents: [{ parts: [{ text: "Hi" }] }] },
    200
  ]
] as const

describe("a byte order mark", () => {
  layer(runningGateway(), { excludeTestServices: true })((it) => {
    for (const [path, body, status] of routes) {
      it.effect(`before a body is skipped: ${path}`, () =>
        Effect.gen(function* () {
          const text = JSON.stringify(body)
          // Unmetered requests are not parsed here
          const second = path.endsWith("count_tokens") ? status : 400
          for (const [sent, expected] of [
            [text, status],
            [`\ufeff${text}`, status],
            [`\ufeff\ufeff${text}`, second]
          ] as const) {
            const answer = yield* call(path, json(sent))
            const received = yield* Effect.promise(() => answer.text())
            assert.strictEqual(answer.status, expected, received)
          }
        })
      )
    }
  })
})
