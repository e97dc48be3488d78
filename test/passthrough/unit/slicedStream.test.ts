import { Clock, Effect, Result } from "effect"
import * as fc from "fast-check"
import type { Readable } from "node:stream"
import { assert, describe, it } from "vitest"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import type { UsageProtocol } from "../../../src/catalog/OpenRoutes.ts"
import type { TokenPrice } from "../../../src/catalog/Price.ts"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { Credits } from "../../../src/domain/Credits.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { CallBill } from "../../../src/passthrough/CallBill.ts"
import { planCall } from "../../../src/passthrough/CallPlan.ts"
import type { CallEnd } from "../../../src/passthrough/Metering.ts"
import { outputBound } from "../../../src/passthrough/slices/OutputBound.ts"
import {
  OutputSlices,
  slicesOf,
  sliceTokens
} from "../../../src/passthrough/slices/OutputSlices.ts"
import { SlicedHold } from "../../../src/passthrough/slices/SlicedHold.ts"
import type { RaiseOutcome } from "../../../src/passthrough/slices/SlicedHold.ts"
import { StreamMeter } from "../../../src/passthrough/streams/StreamMeter.ts"
import { StreamRelay } from "../../../src/vendors/upstream/StreamRelay.ts"

const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

/** An event of each protocol with a piece of text and the names that its vendor adds. */
const piece: { readonly [protocol in UsageProtocol]?: (text: string) => string } = {
  "openai-chat": (content) =>
    event({
      id: "chatcmpl-1",
      choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
      obfuscation: "x".repeat(40)
    }),
  "openai-responses": (delta) =>
    `event: response.output_text.delta\n${event({ type: "response.output_text.delta", item_id: "msg_1", delta, obfuscation: "xx" })}`,
  "anthropic-messages": (text) =>
    `event: content_block_delta\n${event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })}`,
  "gemini-generate": (text) =>
    event({
      candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0 }],
      modelVersion: "gemini"
    })
}
const protocols = Object.keys(piece) as ReadonlyArray<UsageProtocol>

describe("the most tokens in an event of a stream", () => {
  it.each(protocols)("are the bytes of its text (%s)", (protocol) => {
    for (const text of ["a", " the", "größe", "\u{1f600}", '"\\n{}"']) {
      const data = /^data: (.*)$/mu.exec(piece[protocol]!(text))![1]!
      assert.strictEqual(
        outputBound(protocol, JSON.parse(data), data.length),
        Buffer.byteLength(text)
      )
    }
  })

  it.each([
    ["openai-chat", { choices: [{ delta: { role: "assistant", content: null } }] }, 0],
    [
      "openai-chat",
      { choices: [{ delta: { content: "ab" } }, { delta: { refusal: "c" } }] },
      2 + 8
    ],
    [
      "openai-chat",
      {
        choices: [
          { delta: { tool_calls: [{ index: 0, function: { name: "f", arguments: "{}" } }] } }
        ]
      },
      64
    ],
    ["openai-responses", { type: "response.function_call_arguments.delta", delta: '{"a"' }, 4],
    ["openai-responses", { type: "response.output_text.done", text: "all of it" }, 0],
    ["openai-responses", { type: "response.output_item.done", item: { type: "message" } }, 0],
    ["openai-responses", { type: "response.output_item.added", item: { name: "f" } }, 12],
    [
      "openai-responses",
      { type: "response.output_item.done", item: { type: "computer_call" } },
      24
    ],
    ["anthropic-messages", { type: "content_block_start", content_block: { name: "f" } }, 5],
    [
      "anthropic-messages",
      { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: "{}" } },
      2
    ],
    ["anthropic-messages", { type: "message_start", message: { id: "msg_1", usage: {} } }, 0],
    [
      "gemini-generate",
      { candidates: [{ content: { parts: [{ functionCall: { name: "f", args: {} } }] } }] },
      12 + 22
    ],
    ["gemini-generate", { usageMetadata: { promptTokenCount: 4 } }, 0],
    ["openai-chat", undefined, 99]
  ] as const)(
    "count what is no text as its JSON, and what came before once: %s %j",
    (protocol, value, bytes) => {
      assert.strictEqual(outputBound(protocol, value, 99), bytes)
    }
  )
})

/** What a client receives, chunk by chunk, while `covered` tokens may pass. */
const pushed = (meter: StreamMeter, text: string, covered: number, size = 16_384) => {
  const bytes = Buffer.from(text)
  const relayed: Array<Buffer> = []
  for (let at = 0; at < bytes.length; at += size) {
    relayed.push(meter.push(bytes.subarray(at, at + size), covered))
  }
  return Buffer.concat(relayed).toString()
}

describe("the meter of a stream that the hold follows", () => {
  it.each(protocols)(
    "relays what is covered, and keeps the rest until that is covered (%s)",
    (protocol) => {
      const one = piece[protocol]!
      const events = ["abcd", "efgh", "ijkl"].map(one)
      const meter = new StreamMeter(protocol, false)
      assert.strictEqual(pushed(meter, events.join(""), 10), events.slice(0, 2).join(""))
      assert.strictEqual(meter.lacks, 12)
      assert.strictEqual(meter.passed, 8)
      assert.strictEqual(meter.push(Buffer.alloc(0), 11).toString(), "")
      assert.strictEqual(meter.push(Buffer.from(one("mnop")), 12).toString(), events[2])
      assert.strictEqual(meter.lacks, 16)
      assert.strictEqual(meter.push(Buffer.alloc(0)).toString(), one("mnop"))
      assert.isUndefined(meter.lacks)
      assert.strictEqual(meter.tokens, 4)
    }
  )

  it("never relays more output than is covered, however the bytes are cut and the cover grows", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...protocols),
        fc.boolean(),
        fc.array(fc.string({ minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 12 }),
        fc.constantFrom(1, 7, 90, 1000),
        fc.integer({ min: 1, max: 40 }),
        (protocol, hides, texts, size, slice) => {
          const meter = new StreamMeter(protocol, hides)
          const events = texts.map(piece[protocol]!)
          const all = Buffer.from(events.join(""))
          let covered = slice
          let relayed = ""
          let end = 0
          let bytes = 0
          let whole = 0
          const push = (chunk: Buffer) => {
            relayed += meter.push(chunk, covered).toString("latin1")
            // Events that have been relayed completely
            for (; whole < events.length; whole += 1) {
              const size = Buffer.byteLength(events[whole]!)
              if (relayed.length < end + size) break
              end += size
              bytes += Buffer.byteLength(texts[whole]!)
            }
            assert.isAtMost(bytes, meter.passed)
            assert.isAtMost(meter.passed, covered)
          }
          const take = (chunk: Buffer) => {
            push(chunk)
            while (meter.lacks !== undefined) {
              covered = meter.lacks + slice
              push(Buffer.alloc(0))
            }
          }
          for (let at = 0; at < all.length; at += size) take(all.subarray(at, at + size))
          relayed += meter.flush().toString("latin1")
          assert.strictEqual(relayed, all.toString("latin1"))
        }
      ),
      { numRuns: 100 }
    )
  })

  it("keeps back a part of an event that may contain more than is covered, and relays other parts at once", () => {
    const text = piece["openai-chat"]!("x".repeat(60))
    const meter = new StreamMeter("openai-chat", false)
    const half = Math.floor(text.length / 2)
    assert.strictEqual(pushed(meter, text.slice(0, half), text.length), text.slice(0, half))
    const other = new StreamMeter("openai-chat", false)
    assert.strictEqual(pushed(other, text.slice(0, half), 60), "")
    assert.isUndefined(other.lacks)
    assert.strictEqual(pushed(other, text.slice(half), 60), text)
  })

  it("takes all that is left for an event above 64 KiB", () => {
    const text = event({ choices: [{ delta: { audio: { data: "x".repeat(100_000) } } }] })
    const meter = new StreamMeter("openai-chat", false)
    const begun = text.slice(0, 66_000)
    assert.strictEqual(pushed(meter, begun, 4096, 1000), text.slice(0, 4000))
    assert.strictEqual(meter.lacks, Infinity)
    const rest = meter.push(Buffer.from(text.slice(66_000)), Infinity)
    assert.strictEqual(rest.toString(), text.slice(4000))
  })
})

const price: TokenPrice = {
  per: "million_tokens",
  input: Credits.make(1_000_000n),
  output: Credits.make(10_000_000n)
}
const bound = { price, inputTokens: 1000, outputTokens: 20_000, keepsLong: false, tools: undefined }

/** A sliced hold whose store responds when the test tells it to. */
const sliced = (outputTokens = 20_000) => {
  const slices = new OutputSlices([{ ...bound, outputTokens }])
  const asked: Array<{ amount: Credits; answer: (outcome: RaiseOutcome) => void }> = []
  const hold = new SlicedHold(slices, slices.first, (amount, answer) =>
    asked.push({ amount, answer })
  )
  return { asked, hold, slices }
}

describe("a hold that follows a stream", () => {
  it("holds the input and a slice at first, or everything at once if the output fits in a slice", () => {
    const { slices } = sliced()
    assert.strictEqual(slices.first, Credits.make(1000n + BigInt(sliceTokens) * 10n))
    assert.strictEqual(slices.holdFor(Infinity), Credits.make(201_000n))
    assert.isUndefined(slicesOf([{ ...bound, outputTokens: sliceTokens }]))
    assert.isDefined(slicesOf([{ ...bound, outputTokens: sliceTokens + 1 }]))
    const expensive = {
      ...bound,
      price: { ...price, output: Credits.make(50_000_000n) },
      outputTokens: 2000
    }
    // The more expensive of two models, each up to its own limit
    assert.strictEqual(slicesOf([bound, expensive])?.first, Credits.make(101_000n))
  })

  it("asks for the next slice when a quarter of the last is left, and holds two slices beyond what has passed at most", () => {
    const { asked, hold } = sliced()
    hold.passed(3072)
    assert.isEmpty(asked)
    hold.passed(3073)
    hold.passed(3500)
    assert.strictEqual(asked.length, 1)
    assert.strictEqual(hold.covered, sliceTokens)
    asked[0]!.answer("held")
    assert.strictEqual(hold.covered, 2 * sliceTokens)
    assert.strictEqual(hold.amount, Credits.make(1000n + BigInt(2 * sliceTokens) * 10n))
    assert.isAtMost(hold.covered - 3073, 2 * sliceTokens)
  })

  it("covers everything with the last slice, and asks for no more", () => {
    const { asked, hold } = sliced(6000)
    hold.passed(4000)
    asked[0]!.answer("held")
    assert.strictEqual(hold.covered, Infinity)
    assert.strictEqual(hold.amount, Credits.make(61_000n))
    hold.passed(1_000_000)
    assert.strictEqual(asked.length, 1)
  })

  it("asks again when an event needs more than the slice that was under way", () => {
    const { asked, hold } = sliced()
    hold.passed(4000)
    const outcomes: Array<string> = []
    hold.cover(9000, (outcome) => outcomes.push(outcome))
    assert.strictEqual(asked.length, 1)
    asked[0]!.answer("held")
    assert.isEmpty(outcomes)
    asked[1]!.answer("held")
    assert.deepEqual(outcomes, ["held"])
    assert.strictEqual(hold.covered, 9000 + sliceTokens)
  })

  it("continues with the last slice after a refusal, and asks once more when the next slice is needed", () => {
    const { asked, hold } = sliced()
    hold.passed(4000)
    asked[0]!.answer("balance")
    hold.passed(4050)
    assert.strictEqual(asked.length, 1)
    const outcomes: Array<string> = []
    hold.cover(4100, (outcome) => outcomes.push(outcome))
    asked[1]!.answer("budget")
    assert.deepEqual(outcomes, ["budget"])
    assert.strictEqual(hold.covered, sliceTokens)
  })

  it("asks for nothing up to what was held for another model of its alias", () => {
    const slices = new OutputSlices([bound])
    const asked: Array<Credits> = []
    const hold = new SlicedHold(slices, Credits.make(100_000n), (amount) => asked.push(amount))
    hold.passed(4000)
    assert.isEmpty(asked)
    assert.strictEqual(hold.covered, 2 * sliceTokens)
    assert.strictEqual(hold.amount, Credits.make(100_000n))
  })

  it("asks for a slice for each 4,096 bytes of the stream's text", () => {
    const { asked, hold } = sliced(100_000)
    for (let passed = 0; passed <= 40_000; passed += 5) {
      hold.passed(passed)
      asked.at(-1)?.answer("held")
    }
    assert.strictEqual(asked.length, 10)
  })
})

/** A relay of one chat stream with a sliced hold. */
const relayed = () => {
  const { asked, hold } = sliced()
  const meter = new StreamMeter("openai-chat", false)
  const ends: Array<string> = []
  const relay = new StreamRelay({
    sent: () => {},
    refused: () => {},
    document: () => {},
    isHeld: () => (meter.lacks ?? 0) <= hold.covered,
    retake: (done) =>
      hold.cover(meter.lacks ?? 0, (outcome) => queueMicrotask(() => done(outcome === "held"))),
    lose: () => {
      ends.push("lost")
      return Buffer.from("[refused]")
    },
    push: (chunk) => {
      const shown = meter.push(chunk, hold.covered)
      hold.passed(meter.passed)
      return shown
    },
    flush: () => meter.flush(),
    readsOn: () => false,
    ended: (how) => ends.push(how)
  })
  return { asked, ends, relay, stream: relay.open() }
}

const textOf = async (stream: Readable) => (await stream.toArray()).join("")

describe("the relay of a stream that the hold follows", () => {
  const text = (letter: string) => piece["openai-chat"]!(letter.repeat(1000))
  const [a, b, c, d, e, f] = ["a", "b", "c", "d", "e", "f"].map(text) as [string, ...Array<string>]

  it("relays every event that is covered while a slice is asked for, and pauses only behind them", async () => {
    const { asked, ends, relay, stream } = relayed()
    assert.isTrue(relay.receive(Buffer.from(a + b! + c!)))
    assert.isEmpty(asked)
    assert.isTrue(relay.receive(Buffer.from(d!)))
    assert.strictEqual(asked.length, 1)
    assert.isFalse(relay.receive(Buffer.from(e!)))
    assert.strictEqual(String(stream.read()), a + b! + c! + d!)
    assert.isFalse(relay.receive(Buffer.from(f!)))
    relay.finish()
    assert.isEmpty(ends)
    asked[0]!.answer("held")
    assert.strictEqual(await textOf(stream), e! + f!)
    assert.deepEqual(ends, ["complete"])
  })

  it("ends with its error event after the covered part when the slice is refused", async () => {
    const { asked, ends, relay, stream } = relayed()
    relay.receive(Buffer.from(a + b! + c! + d! + e! + f!))
    asked[0]!.answer("balance")
    assert.strictEqual(await textOf(stream), `${a}${b}${c}${d}[refused]`)
    assert.deepEqual(ends, ["lost"])
  })
})

/** docs/reference/wallet.md#holds-of-streams */
describe("a slice that is granted at once, as by a reservation", () => {
  const catalog = makeUpstreamCatalog()
  const route = builtInRoutes.find(({ path }) => path === "/v1/chat/completions")!
  const body = Buffer.from(JSON.stringify({ model: "gpt-4o", stream: true, messages: [] }))

  it("lets the rest of a chunk pass, and the vendor's figures at its end are charged and hidden", async () => {
    const plan = Result.getOrThrow(planCall(catalog, route, undefined, body, 0))
    const ends: Array<CallEnd> = []
    const bill = new CallBill(
      {
        id: "call_1",
        user: UserId.make("019a0000-0000-7000-8000-000000000000"),
        held: plan.slices!.first,
        begunMillis: 0,
        alias: undefined,
        vendor: "openai",
        route: "POST /v1/chat/completions"
      },
      plan,
      body.length,
      {
        abandoned: { begin: () => undefined, isFull: () => false },
        clock: Effect.runSync(Clock.Clock),
        close: (end) => ends.push(end),
        content: undefined,
        hold: { isHeld: () => true, retake: (done) => done(true), drawn: true },
        raise: (_amount, onRaised) => onRaised("held")
      }
    )
    const relay = new StreamRelay(bill)
    const stream = relay.open()
    const shown = piece["openai-chat"]!("a".repeat(1000)).repeat(14)
    const figures = event({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 3500 } })
    relay.receive(Buffer.from(`${shown}${figures}data: [DONE]\n\n`))
    relay.finish()
    assert.strictEqual(await textOf(stream), `${shown}data: [DONE]\n\n`)
    assert.lengthOf(ends, 1)
    assert.deepInclude(ends[0]!.usage, { inputTokens: 10, outputTokens: 3500, counted: false })
  })
})
