import { Effect, Option } from "effect"
import { assert, describe, it } from "vitest"
import * as Credits from "../../../src/domain/Credits.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import type { Users } from "../../../src/users/Users.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { events, json, mockVendor, upstreamOfTests } from "../../support/mockVendors.ts"
import { jsonOf, gatewayOfTests } from "../../support/passthroughGateway.ts"
import { until } from "../../support/until.ts"

/** Holds that follow a stream. docs/reference/wallet.md#holds-of-streams, ADR 0306 */

const upstream = await upstreamOfTests(mockVendor(() => {}))
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: upstream.origin,
  ANTHROPIC_API_KEY: "sk-ant-vendor",
  ANTHROPIC_BASE_URL: upstream.origin,
  GEMINI_API_KEY: "gemini-vendor",
  GEMINI_BASE_URL: upstream.origin
})

const run = <A, E>(effect: Effect.Effect<A, E, Users | Wallet | Metering | ApiKeys>): Promise<A> =>
  gateway.run(effect as Effect.Effect<A, E, Wallet>)

const micro = (credits: number) => Credits.make(BigInt(Math.round(credits * 1e6)))

/** A new user with this many credits, whose key may have a spend limit. */
const newCaller = async (credits: number, limit?: number) => {
  const caller = await gateway.newCaller(credits)
  if (limit !== undefined) {
    const change = { spendLimit: micro(limit), reset: "never" } as const
    await run(Effect.flatMap(ApiKeys, (keys) => keys.update(Option.none(), caller.keyId, change)))
  }
  return caller
}
type Caller = Awaited<ReturnType<typeof newCaller>>

const walletOf = ({ userId }: Caller) => run(Effect.flatMap(Wallet, (it) => it.get(userId)))

const settled = async (caller: Caller) => {
  await until(async () => (await walletOf(caller)).held === 0n, { what: "the stream is settled" })
  assert.strictEqual(await gateway.drift(), 0)
  const calls = run(Effect.flatMap(Metering, (it) => it.search(caller.userId, { limit: 9 })))
  const entries = run(
    Effect.flatMap(Wallet, (it) => it.search(caller.userId, { before: Option.none(), limit: 99 }))
  )
  return {
    receipt: (await calls).rows[0]!,
    kinds: (await entries).rows
      .map(({ kind }) => kind)
      .toReversed()
      .slice(1),
    wallet: await walletOf(caller)
  }
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const event = (type: string, value: object) => `event: ${type}\n${data({ type, ...value })}`

interface Dialect {
  readonly path: string
  readonly body: object
  readonly piece: (text: string) => string
  readonly end: (tokens: number) => ReadonlyArray<string>
  /** What its clients read. */
  readonly refusal: object
}

const dialects: Readonly<Record<string, Dialect>> = {
  "OpenAI's chats": {
    path: "/v1/chat/completions",
    body: { model: "gpt-4o", stream: true, messages: [{ role: "user", content: "Tell" }] },
    piece: (content) => data({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
    end: (tokens) => [
      data({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
      data({ choices: [], usage: { prompt_tokens: 10, completion_tokens: tokens } }),
      "data: [DONE]\n\n"
    ],
    refusal: { error: { type: "insufficient_quota", code: "1101", param: null } }
  },
  "OpenAI's responses": {
    path: "/v1/responses",
    body: { model: "gpt-4o", stream: true, store: false, input: "Tell" },
    piece: (delta) => event("response.output_text.delta", { delta }),
    end: (tokens) => [
      event("response.completed", {
        response: { id: "resp_1", usage: { input_tokens: 10, output_tokens: tokens } }
      })
    ],
    refusal: { type: "error", code: "1101", param: null }
  },
  "Anthropic's messages": {
    path: "/v1/messages",
    body: {
      model: "claude-haiku-4-5",
      stream: true,
      max_tokens: 30_000,
      thinking: { type: "disabled" },
      messages: [{ role: "user", content: "Tell" }]
    },
    piece: (text) =>
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    end: (tokens) => [
      event("content_block_stop", { index: 0 }),
      event("message_delta", {
        delta: { stop_reason: "end_turn" },
        usage: { input_tokens: 10, output_tokens: tokens }
      }),
      event("message_stop", {})
    ],
    refusal: { type: "error", error: { type: "billing_error" } }
  },
  "Google's contents": {
    path: "/vendors/google/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    body: {
      contents: [{ parts: [{ text: "Tell" }] }],
      generationConfig: { thinkingConfig: { thinkingBudget: 0 } }
    },
    piece: (text) => data({ candidates: [{ content: { parts: [{ text }], role: "model" } }] }),
    end: (tokens) => [
      data({
        candidates: [{ content: { parts: [] }, finishReason: "STOP" }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: tokens }
      })
    ],
    refusal: { error: { code: 402, status: "FAILED_PRECONDITION" } }
  }
}

const names = Object.keys(dialects)
const chat = dialects["OpenAI's chats"]!

const post = ({ key }: Caller, path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${gateway.origin}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })

/** The upstream sends pieces of a thousand bytes, each when the test tells it to. */
const scripted = (name: string, pieces: number, tokens: number) => {
  const { end, piece } = dialects[name]!
  const gates = Array.from({ length: pieces }, () => Promise.withResolvers<void>())
  upstream.script = (_, response) =>
    events(
      response,
      [...gates.map((_, n) => piece(String(n).repeat(1000))), ...end(tokens)],
      (index) => gates[index]?.promise ?? Promise.resolve()
    )
  return { next: (upTo: number) => gates.slice(0, upTo + 1).forEach(({ resolve }) => resolve()) }
}

/** Reads a stream as it arrives. */
const reading = (response: Response) => {
  const read = { text: "" }
  const decoder = new TextDecoder()
  const done = (async () => {
    for await (const chunk of response.body!) read.text += decoder.decode(chunk, { stream: true })
  })()
  return { read, done }
}

describe("a stream whose output is visible", () => {
  it.each(names)(
    "holds its input and at most two slices beyond what has passed, and is charged as reported: %s",
    async (name) => {
      const { body, path } = dialects[name]!
      const caller = await newCaller(1000)
      const { next } = scripted(name, 10, 2500)
      const { done, read } = reading(await post(caller, path, body))
      await until(() => read.text.includes("0".repeat(1000)), { what: "the first piece" })
      const first = (await walletOf(caller)).held
      next(8)
      await until(() => read.text.includes("8".repeat(1000)), { what: "nine pieces" })
      await until(async () => (await walletOf(caller)).held > first, { what: "it holds more" })
      const later = (await walletOf(caller)).held
      next(10)
      await done
      const { kinds, receipt, wallet } = await settled(caller)
      // Two more slices were held while nine thousand bytes passed
      assert.deepEqual(kinds, ["hold", "hold", "hold", "capture", "release"])
      assert.isTrue(later < first * 4n, `${later} of ${first}`)
      assert.deepInclude(receipt, { outcome: "settled", chargedLate: false, held: later })
      assert.strictEqual(receipt.usage!["outputTokens"], 2500)
      assert.strictEqual(wallet.settled, micro(1000) - receipt.captured)
      assert.isTrue(receipt.captured < receipt.held)
    }
  )

  it.each(names)(
    "ends with an error event if the wallet covers no other slice, and is charged for what passed: %s",
    async (name) => {
      const { body, path, refusal } = dialects[name]!
      const caller = await newCaller(1000)
      // The cost of the first slice
      scripted(name, 1, 10)
      await (await post(caller, path, body)).text()
      const { receipt } = await settled(caller)
      const poor = await newCaller(Math.ceil(Number(receipt.held) / 10_000 + 1) / 100)
      upstream.seen.length = 0
      const { next } = scripted(name, 40, 20_000)
      next(38)
      const text = await (await post(poor, path, body)).text()
      const last = text.trimEnd().split("\n\n").at(-1)!
      assert.containSubset(JSON.parse(/^data: (.*)$/mu.exec(last)![1]!), refusal)
      assert.match(last, /balance does not cover/u)
      // Four thousand bytes are covered by 4,096 tokens
      assert.include(text, "3".repeat(1000))
      assert.notInclude(text, "4".repeat(10))
      await until(() => upstream.seen[0]!.aborted !== undefined, { what: "the upstream is closed" })
      const end = await settled(poor)
      assert.deepInclude(end.receipt, { outcome: "settled", held: receipt.held })
      assert.deepInclude(end.receipt.usage, { counted: true, outputTokens: 1000 })
      assert.isTrue(end.wallet.settled > 0n)
    }
  )

  it("ends when the spend limit of its key covers no other slice", async () => {
    const caller = await newCaller(1000, 6)
    const { next } = scripted("OpenAI's chats", 12, 3000)
    next(12)
    const response = await post(caller, chat.path, chat.body)
    assert.strictEqual(response.status, 200)
    const text = await response.text()
    assert.match(text, /"code":"1102"/u)
    assert.match(text, /spend limit of this API key does not cover/u)
    const { receipt } = await settled(caller)
    assert.strictEqual(receipt.outcome, "settled")
  })

  it("is charged late for what its vendor reports beyond what it showed", async () => {
    const caller = await newCaller(5)
    scripted("OpenAI's chats", 1, 9000)
    await (await post(caller, chat.path, chat.body)).text()
    const { kinds, receipt, wallet } = await settled(caller)
    assert.deepEqual(kinds, ["hold", "capture", "late_charge"])
    assert.deepInclude(receipt, { outcome: "settled", chargedLate: true, captured: micro(9.0025) })
    assert.strictEqual(wallet.settled, micro(5 - 9.0025))
    assert.strictEqual((await post(caller, chat.path, chat.body)).status, 402)
  })

  it("is refused before its hold if its worst case, and not only its first slice, exceeds the maximum", async () => {
    const caller = await newCaller(1000)
    const refused = await post(caller, chat.path, chat.body, { "x-service-max-cost": "10" })
    assert.strictEqual(refused.status, 402)
    assert.strictEqual((await jsonOf(refused)).code, 1103)
    assert.isEmpty(upstream.seen)
    const { next } = scripted("OpenAI's chats", 1, 10)
    next(1)
    const allowed = await post(caller, chat.path, chat.body, { "x-service-max-cost": "20" })
    assert.strictEqual(allowed.status, 200)
    await allowed.text()
  })

  it("takes the slices of a busy key from its reservation, which grows when it is used up", async () => {
    const caller = await newCaller(1000)
    const send = async (more = {}) => {
      const response = await post(caller, chat.path, { ...chat.body, ...more })
      return { id: response.headers.get("x-service-call-id"), text: await response.text() }
    }
    // A short call holds as much as the first slice of a long one, so the reservation has room for both
    const busy = async () => {
      for (let n = 0; n < 8; n += 1) await send({ max_tokens: 4096 })
    }
    const page = { before: Option.none(), limit: 1000, kind: "hold" } as const
    /** The long calls without holds of their own. */
    const drawnOf = async (long: ReadonlyArray<string | null>) => {
      const { wallet } = await settled(caller)
      const { rows } = await run(
        Effect.flatMap(Metering, (it) => it.search(caller.userId, { limit: 1000 }))
      )
      const charged = rows.reduce((sum, { captured }) => sum + captured, 0n)
      assert.strictEqual(wallet.settled, micro(1000) - charged)
      assert.isTrue(rows.every(({ chargedLate, outcome }) => outcome === "settled" && !chargedLate))
      const holds = await run(Effect.flatMap(Wallet, (it) => it.search(caller.userId, page)))
      const withHold = new Set(holds.rows.map(({ subjectId }) => subjectId))
      return rows.filter(({ id }) => long.includes(id) && !withHold.has(id))
    }
    // A slow machine may not make enough calls in a second
    const drawn = await until(
      async () => {
        scripted("OpenAI's chats", 0, 10)
        await Promise.all(Array.from({ length: 5 }, busy))
        const { next } = scripted("OpenAI's chats", 14, 3500)
        next(14)
        const sent = Promise.all(Array.from({ length: 5 }, () => send()))
        const [long] = await Promise.all([sent, busy()])
        for (const { text } of long) assert.include(text, "[DONE]")
        const drawn = await drawnOf(long.map(({ id }) => id))
        return drawn.length > 0 && drawn
      },
      { what: "a call that draws on the reservation" }
    )
    // Eighteen thousand bytes take five slices
    for (const { held, usage } of drawn) {
      assert.deepInclude(usage, { outputTokens: 3500, counted: false })
      assert.isTrue(held > 4n * micro(4), `${held}`)
    }
  })
})

describe("a call whose output is not visible as it passes", () => {
  const held = async (body: object) => {
    const caller = await newCaller(1000)
    const { next } = scripted("OpenAI's chats", 2, 10)
    const { done, read } = reading(await post(caller, chat.path, { ...chat.body, ...body }))
    await until(() => read.text.includes("0".repeat(1000)), { what: "the first piece" })
    const { held } = await walletOf(caller)
    next(2)
    await done
    await settled(caller)
    return held
  }

  it("holds its worst case if it may reason, has a prediction or has no more output than a slice", async () => {
    assert.isTrue((await held({})) < micro(5))
    assert.isTrue((await held({ reasoning_effort: "low" })) > micro(16))
    assert.isTrue((await held({ prediction: { type: "content", content: "x" } })) > micro(16))
    assert.isTrue((await held({ max_tokens: 4096 })) > micro(4))
  })

  it("holds its worst case if it is not a stream", async () => {
    const caller = await newCaller(1000)
    let amount = 0n
    upstream.script = async (_, response) => {
      amount = (await walletOf(caller)).held
      json(response, 200, { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })
    }
    await (await post(caller, chat.path, { ...chat.body, stream: false })).text()
    assert.isTrue(amount > micro(16))
    await settled(caller)
  })
})
