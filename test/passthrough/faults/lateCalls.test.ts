import { Effect, Exit, Scope } from "effect"
import { randomBytes } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { callLeaseSeconds } from "../../../src/domain/limits/Limits.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"

const each = 4
/** Long enough that its tokens cost more than a cent. */
const messages = [{ role: "user", content: "a turtle ".repeat(500) }]

interface Receipt {
  readonly trace_id: string
  readonly outcome: string
  readonly charged_late: boolean
  readonly cost: string
}

interface Answer {
  readonly status: number
  readonly text: string
}

/** Two gateways on one store, and a vendor that pauses in the middle of responses until it is told to continue. */
const start = async (databaseUrl: string) => {
  const upstream = await mockOpenAi()
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
  const first = await GatewayProcess.start({ databaseUrl, env })
  const second = await GatewayProcess.start({ databaseUrl, env })
  let gate = Promise.withResolvers<void>()
  let waiting = 0
  const answering = upstream.script
  const hold = () => {
    gate = Promise.withResolvers<void>()
    waiting = 0
    upstream.script = async (request, response) => {
      const body = JSON.parse(request.body)
      const events = chatEvents(["Hel", "lo", " there"], true)
      if (body.stream === true) {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(events.slice(0, 2).join(""))
      }
      waiting += 1
      await gate.promise
      if (body.stream !== true) return openAiScript(request, response)
      response.end(events.slice(2).join(""))
    }
  }
  /** The text of a stream grows as it arrives. */
  const chat = (key: string, stream: boolean) => {
    const answer = { status: 0, text: "" }
    const trace = randomBytes(16).toString("hex")
    const done = fetch(`${first.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        traceparent: `00-${trace}-${trace.slice(16)}-01`
      },
      body: JSON.stringify({ model: "gpt-4o", max_tokens: 1000, messages, stream })
    }).then(async (response) => {
      answer.status = response.status
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) answer.text += decoder.decode(chunk)
      return answer
    })
    return { answer, done, trace }
  }
  const get = async (key: string, path: string): Promise<Record<string, never>> => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${second.url}/manage/v1${path}`, { headers })
    return (await response.json()) as Record<string, never>
  }
  return {
    upstream,
    first,
    second,
    chat,
    get,
    hold,
    release: () => {
      upstream.script = answering
      gate.resolve()
    },
    isWaiting: (calls: number) =>
      until(() => waiting === calls, { what: `${calls} calls at the vendor` }),
    [Symbol.asyncDispose]: async () => {
      await first.close()
      await second.close()
      await upstream.close()
    }
  }
}

type Bench = Awaited<ReturnType<typeof start>>

/** Whole responses and streams that have begun. Most of those with the same key are drawn on its reservation. */
const openCalls = async ({ chat, hold, isWaiting, second, upstream }: Bench) => {
  const own = (await second.makeUser("1000.00")).key
  const often = (await second.makeUser("1000.00")).key
  const state = { isBusy: true }
  const clients = Array.from({ length: 2 * each }, (_, n) => {
    const isStream = n % 2 === 0
    const client = { key: often, isStream, ...chat(often, isStream) }
    const again = async (): Promise<Answer> => {
      const answer = await client.done
      if (!state.isBusy) return answer
      Object.assign(client, chat(often, isStream))
      return again()
    }
    return { client, last: again() }
  })
  const before = upstream.seen.length
  await until(() => upstream.seen.length > before + 150, {
    what: "150 calls",
    millis: 100_000
  })
  hold()
  const single = Array.from({ length: 2 * each }, (_, n) => {
    const isStream = n % 2 === 0
    return { key: own, isStream, ...chat(own, isStream) }
  })
  await isWaiting(4 * each)
  state.isBusy = false
  const calls = [
    ...single,
    ...clients.map(({ client: { answer, isStream, key, trace }, last }) => ({
      answer,
      isStream,
      key,
      trace,
      done: last
    }))
  ]
  await until(
    async () => calls.every(({ answer, isStream }) => !isStream || answer.text.includes('"lo"')),
    { what: "the beginnings of all streams" }
  )
  return { own, often, calls }
}

/**
 * The wallet once it holds nothing and was charged for this many of the calls that the vendor held back, after an audit
 * that found no drift.
 */
const settled = async (
  { get, second }: Bench,
  key: string,
  calls: ReadonlyArray<{ readonly trace: string }>,
  charges: number
) => {
  const traces = new Set(calls.map(({ trace }) => trace))
  const receipts = await until(
    async () => {
      const { held_balance: held } = await get(key, "/wallet")
      const { data } = await get(key, "/calls?limit=100")
      const all: ReadonlyArray<Receipt> = data ?? []
      const charged = all.filter((it) => traces.has(it.trace_id) && Number(it.cost) > 0)
      return held === "0.00" && charged.length >= charges ? all : undefined
    },
    { what: `${charges} calls are charged and nothing is held`, millis: 60_000 }
  )
  const now = Date.now() / 1000
  await until(
    async () => {
      const { text } = await second.call("GET", "/metrics")
      const at = Number(/^gateway_wallet_audit_timestamp_seconds (\S+)$/mu.exec(text)?.[1])
      if (!(at > now)) return undefined
      assert.match(text, /^gateway_wallet_drift 0$/mu)
      return true
    },
    { what: "an audit", millis: 120_000 }
  )
  const { data } = await get(key, "/wallet/entries?kind=late_charge&limit=100")
  const late: ReadonlyArray<{ readonly amount: string }> = data ?? []
  const { settled_balance: balance } = await get(key, "/wallet")
  const charged = receipts.filter((it) => traces.has(it.trace_id) && Number(it.cost) > 0)
  return { balance: Number(balance), charged, receipts, late }
}

const released = async (bench: Bench) => {
  const { calls, often, own } = await openCalls(bench)
  const pid = bench.first.pid ?? 0
  process.kill(pid, "SIGSTOP")
  for (const key of [own, often]) {
    await until(async () => (await bench.get(key, "/wallet"))["held_balance"] === "0.00", {
      what: "the rescue of calls and reservations",
      millis: 100_000
    })
  }
  bench.release()
  process.kill(pid, "SIGCONT")
  const answers: ReadonlyArray<Answer> = await Promise.all(calls.map(({ done }) => done))
  const ended = answers.map(({ status, text }, n) => {
    const { isStream, key } = calls[n]!
    return { isStream, key, status, text }
  })
  for (const { isStream, key, status, text } of ended) {
    // What was drawn on a reservation may have been reserved again in the meantime
    if (key === often && (isStream ? text.endsWith("[DONE]\n\n") : status === 200)) continue
    if (isStream) {
      assert.strictEqual(status, 200)
      assert.notInclude(text, " there")
      assert.match(text, /data: \{"error":\{"message":"[^"]+","type":"server_error"/u)
    } else {
      assert.strictEqual(status, 503)
      assert.strictEqual(JSON.parse(text).code, 5003)
    }
  }
  for (const key of [own, often]) {
    const isOwn = key === own
    const answered = ended.filter((it) => it.key === key && it.status === 200)
    const { balance, charged, late, receipts } = await settled(bench, key, calls, answered.length)
    assert.strictEqual(charged.length, answered.length)
    assert.isTrue(charged.every(({ outcome }) => outcome === "settled"))
    // Including calls that had ended but were not settled when their process was stopped
    assert.strictEqual(receipts.filter((it) => it.charged_late).length, late.length)
    if (!isOwn) continue
    assert.strictEqual(late.length, each)
    const sum = late.reduce((all, { amount }) => all + Number(amount), 0)
    assert.closeTo(1000 - balance, sum, 0.001)
  }
}

const kept = async (bench: Bench) => {
  const { calls, often, own } = await openCalls(bench)
  const pids = [bench.first.pid ?? 0, bench.second.pid ?? 0] as const
  for (const pid of pids) process.kill(pid, "SIGSTOP")
  bench.release()
  await pause((callLeaseSeconds + 1) * 1000)
  process.kill(pids[0], "SIGCONT")
  const answers: ReadonlyArray<Answer> = await Promise.all(calls.map(({ done }) => done))
  process.kill(pids[1], "SIGCONT")
  for (const [n, { status, text }] of answers.entries()) {
    assert.strictEqual(status, 200)
    if (calls[n]?.isStream === true) assert.match(text, / there[^]+\[DONE\]\n\n$/u)
  }
  for (const key of [own, often]) {
    const { charged, late } = await settled(bench, key, calls, 2 * each)
    assert.isEmpty(late)
    assert.isTrue(charged.every(({ outcome }) => outcome === "settled"))
  }
}

describe("a process that was stopped for longer than the lease of its calls", () => {
  const scope = Scope.makeUnsafe()
  let bench: Bench
  beforeAll(async () => {
    const { href } = await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))
    bench = await start(href)
  })
  afterAll(async () => {
    await bench[Symbol.asyncDispose]()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it(
    "ends what another has released, and is charged once for what its clients have",
    () => released(bench),
    400_000
  )
  it("continues with the holds that nobody has released", () => kept(bench), 400_000)
})
