import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { chatCompletion, chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { events, json, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const chat = {
  model: "gpt-4o",
  max_tokens: 600,
  messages: [{ role: "user", content: "x".repeat(1500) }]
}
const bytes = JSON.stringify(chat).length

const upstream = await upstreamOfTests(mockOpenAi())
const file = join(temporaryFolder("catalog"), "catalog.json")
writeFileSync(
  file,
  JSON.stringify({
    routes: [
      {
        vendor: "openai",
        provider: "openai",
        method: "POST",
        path: "/v1/images/generations",
        meter: { per: "call", amount: "4.00" }
      }
    ],
    tokenModels: [
      {
        vendor: "openai",
        model: "thinker",
        price: { per: "million_tokens", input: "100", output: "1000", reasoning: "3000" },
        outputTokensMax: 1000,
        inputTokensMax: 10000
      }
    ]
  })
)
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: upstream.origin,
  CATALOG_FILE: file
})

const requestIds = () =>
  gateway.run(
    Effect.flatMap(
      PgClient.PgClient,
      (sql) =>
        sql<{ id: string | null; usage: object | null }>`
          SELECT request_id AS id, usage FROM calls ORDER BY created_at DESC, id DESC`
    ) as Effect.Effect<ReadonlyArray<{ id: string | null; usage: object | null }>>
  )

describe("metering", () => {
  it("holds the most that the call can cost, settles what it cost, and releases the rest", async () => {
    await gateway.post("/v1/chat/completions", chat)
    const call = await gateway.newest()
    assert.strictEqual(call.firstTokenMs, null)
    assert.isString(call.accountId)
    // Every byte may be a token at 250, and 600 tokens at 1000 credits per million
    assert.equal(call.held, BigInt(bytes) * 250n + 600n * 1000n)
    assert.equal(call.captured, 700_000n)
    assert.equal(call.outcome, "settled")
    assert.deepEqual(
      (await gateway.entries())
        .slice(0, 3)
        .map(({ amount, kind, subjectId }) => [kind, BigInt(amount), subjectId]),
      [
        ["release", call.held - call.captured, call.id],
        ["capture", BigInt(call.captured), call.id],
        ["hold", BigInt(call.held), call.id]
      ]
    )
    assert.equal(await gateway.drift(), 0)
  })

  it("holds the catalog's figure when the body sets no limit", async () => {
    const { max_tokens: _, ...open } = chat
    await gateway.post("/v1/chat/completions", open)
    const call = await gateway.newest()
    assert.equal(call.held, BigInt(JSON.stringify(open).length) * 250n + 16_384n * 1000n)
  })

  it("prices cached and reasoning tokens at their own price", async () => {
    await gateway.post("/v1/chat/completions", {
      ...chat,
      model: "thinker",
      max_completion_tokens: 900
    })
    // 1000 input at 100, 400 output at 1000, 100 reasoning at 3000 credits a million
    assert.equal((await gateway.newest()).captured, 100_000n + 400_000n + 300_000n)
  })

  it("a call that may cost more than its tokens is refused before anything is held or sent", async () => {
    const code = { type: "code_execution_20250825", name: "code_execution" }
    const refused: ReadonlyArray<readonly [string, object, ReadonlyArray<string>]> = [
      ["/v1/chat/completions", { ...chat, service_tier: "priority" }, ["#/service_tier"]],
      ["/v1/chat/completions", { ...chat, web_search_options: {} }, ["#/web_search_options"]],
      [
        "/v1/chat/completions",
        { ...chat, models: ["openai/o3-pro"], plugins: [{ id: "web" }], deferred: true },
        ["#/models", "#/plugins", "#/deferred"]
      ],
      [
        "/v1/chat/completions",
        { ...chat, preset: "large", provider: { order: ["dear"] } },
        ["#/preset", "#/provider"]
      ],
      [
        "/vendors/openai/v1/responses",
        {
          model: "gpt-4o",
          input: "Hi",
          service_tier: "fast",
          tools: [
            { type: "function", name: "f" },
            { type: "web_search_preview" },
            { type: "shell" }
          ]
        },
        ["#/service_tier", "#/tools/1", "#/tools/2"]
      ],
      [
        "/vendors/anthropic/v1/messages",
        { ...chat, model: "claude-haiku-4-5", speed: "fast", tools: [{ name: "f" }, code] },
        ["#/speed", "#/tools/1"]
      ],
      [
        "/vendors/google/v1/models/gemini-2.5-flash:generateContent",
        { contents: [], tools: [{ functionDeclarations: [] }, { retrieval: {} }] },
        ["#/tools/1"]
      ],
      [
        "/vendors/google/v1/models/gemini-2.5-flash:generateContent",
        { contents: {}, tools: { retrieval: {} } },
        ["#/tools"]
      ]
    ]
    const count = (await gateway.entries()).length
    for (const [path, body, pointers] of refused) {
      const answer = await gateway.post(path, body)
      assert.equal(answer.status, 400, path)
      const { code, errors } = (await answer.json()) as {
        code: number
        errors: ReadonlyArray<{ pointer: string }>
      }
      assert.equal(code, 2001)
      assert.deepEqual(
        errors.map(({ pointer }) => pointer),
        pointers
      )
    }
    assert.equal(upstream.seen.length, 0)
    assert.equal((await gateway.entries()).length, count)
    const fine = {
      ...chat,
      service_tier: "auto",
      tools: [
        { type: "function", function: { name: "f" } },
        { type: "custom", custom: {} }
      ]
    }
    assert.equal((await gateway.post("/v1/chat/completions", fine)).status, 200)
    await gateway.settled()
  })

  it("never captures more than was held", async () => {
    await gateway.post("/v1/chat/completions", { ...chat, max_tokens: 1, messages: [] })
    const call = await gateway.newest()
    assert.equal(call.captured, call.held)
  })

  it("a route that is charged by the call costs its price, and a free one costs nothing", async () => {
    const image = await gateway.post("/vendors/openai/v1/images/generations", { prompt: "x" })
    assert.equal(image.headers.get("x-service-cost"), "4.00")
    assert.equal((await gateway.newest()).captured, 4_000_000n)
    const before = (await gateway.calls()).length
    await gateway.post("/vendors/openai/v1/moderations", { input: "x" })
    assert.equal((await gateway.calls()).length, before)
  })

  it("the receipt of a stream has the time to its first piece", async () => {
    const wait = 60
    upstream.script = (_, response) => {
      const all = chatEvents(["a", "b"], true)
      return events(
        response,
        [all[0]!, all.slice(1).join("")],
        () => new Promise((resolve) => setTimeout(resolve, wait))
      )
    }
    const begun = Date.now()
    await (await gateway.post("/v1/chat/completions", { ...chat, stream: true })).text()
    const took = Date.now() - begun
    const { endedAt, createdAt, firstTokenMs } = await gateway.newest()
    assert.isAtLeast(took, wait)
    assert.isAtLeast(firstTokenMs!, 0)
    // The first piece came before the wait
    assert.isBelow(firstTokenMs!, endedAt.epochMilliseconds - createdAt.epochMilliseconds)
  })

  it("a stream that the upstream breaks off, or ends with an error, is not charged", async () => {
    for (const tail of ["break", 'data: {"error":{"message":"overloaded"}}\n\n']) {
      upstream.script = (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(chatEvents(["a"], false)[0])
        if (tail === "break") setTimeout(() => response.destroy(), 20)
        else response.end(tail)
      }
      const answer = await gateway.post("/v1/chat/completions", { ...chat, stream: true })
      await answer.text().catch(() => {})
      assert.equal((await gateway.newest()).outcome, "released")
    }
  })

  it("insufficient credits are 402 before the upstream is called, and change nothing", async () => {
    const count = (await gateway.entries()).length
    const answer = await gateway.post("/v1/chat/completions", {
      ...chat,
      max_tokens: 16_384,
      n: 128
    })
    assert.equal(answer.status, 402)
    const problem = await jsonOf(answer)
    assert.equal(problem.code, 1101)
    assert.equal(problem.error.type, "insufficient_quota")
    // 16,384 tokens for each of 128 choices at 1000 credits a million, and the bytes of the prompt at 250
    assert.match(problem.detail, /lower than the 2097\.\d+ credits that this call holds$/u)
    assert.equal(upstream.seen.length, 0)
    assert.equal((await gateway.entries()).length, count)
  })

  it("many calls at once hold and settle exactly once each, and the ledger is consistent", async () => {
    const before = await gateway.settled()
    const many = Array.from({ length: 60 }, () => gateway.post("/v1/chat/completions", chat))
    const answers = await Promise.all(many)
    assert.isTrue(answers.every(({ status }) => status === 200))
    const after = await gateway.settled()
    assert.equal(before.settled - after.settled, 60n * 700_000n)
    const seqs = (await gateway.entries()).map(({ seq }) => seq)
    assert.equal(new Set(seqs).size, seqs.length)
    assert.equal(await gateway.drift(), 0)
  })

  it("each call has a receipt, visible to its owner only", async () => {
    const made = await gateway.post("/v1/chat/completions", chat)
    const id = made.headers.get("x-service-call-id")!
    await gateway.settled()
    const read = (path: string) =>
      fetch(`${gateway.origin}/manage/v1/calls${path}`, {
        headers: { authorization: `Bearer ${gateway.key}` }
      })
    const receipt = (await (await read(`/${id}`)).json()) as Record<string, unknown>
    assert.equal(receipt["cost"], "0.70")
    assert.equal(receipt["model"], "gpt-4o")
    assert.equal(receipt["trace_id"], made.headers.get("traceparent")!.slice(3, 35))
    const page = (await (await read("?limit=1")).json()) as { data: Array<{ id: string }> }
    assert.equal(page.data[0]!.id, id)
    assert.equal((await read("/01a1fdf6-b9b8-7edc-88b3-1d552f1e44f4")).status, 404)
  })
})

describe("the vendor's id of a request", () => {
  const answerWith = (headers: Record<string, string>) => {
    upstream.script = (_, response) => json(response, 200, chatCompletion("gpt-4o"), headers)
  }
  const newestId = async () => {
    await gateway.settled()
    return (await requestIds())[0]!
  }

  it("is in the receipt of whole responses and streams, and not in its usage", async () => {
    answerWith({ "x-request-id": "req_whole" })
    await gateway.post("/v1/chat/completions", chat)
    const { id, usage } = await newestId()
    assert.equal(id, "req_whole")
    assert.notProperty(usage, "request")
    answerWith({ "request-id": "req_anthropic" })
    await gateway.post("/v1/chat/completions", chat)
    assert.equal((await newestId()).id, "req_anthropic")
    upstream.script = openAiScript
    const streamed = await gateway.post("/v1/chat/completions", { ...chat, stream: true })
    await streamed.text()
    assert.equal((await newestId()).id, "req_mock")
  })

  it("is kept if it is a short plain text", async () => {
    for (const id of ["x".repeat(129), "a b", "ü"]) {
      answerWith({ "x-request-id": id })
      await gateway.post("/v1/chat/completions", chat)
      assert.isNull((await newestId()).id)
    }
    answerWith({ "x-request-id": "x".repeat(128) })
    await gateway.post("/v1/chat/completions", chat)
    assert.lengthOf((await newestId()).id!, 128)
  })

  it("is also in the receipts of calls that are drawn on a reservation", async () => {
    answerWith({ "x-request-id": "req_drawn" })
    const before = (await requestIds()).length
    for (let n = 0; n < 4; n += 1) {
      await Promise.all(
        Array.from({ length: 20 }, () =>
          gateway.post("/v1/chat/completions", { model: "gpt-4o", max_tokens: 5, messages: [] })
        )
      )
    }
    await gateway.settled()
    const ids = (await requestIds()).slice(0, -before)
    assert.lengthOf(ids, 80)
    assert.deepEqual(new Set(ids.map(({ id }) => id)), new Set(["req_drawn"]))
  })
})
