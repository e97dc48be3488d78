import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import { randomBytes } from "node:crypto"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { layerPostgres } from "../../../src/db/Database.ts"
import { callLeaseSeconds } from "../../../src/domain/limits/Limits.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { chatEvents, mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"

const each = 4
/** How many clients use one key at the same time. */
const clientsCount = 8
/** The cost of a call with the mock's usage; nothing is rounded. */
const cost = 0.7
/** Longer than a process without a heartbeat owns tasks, and shorter than the lease of its calls. */
const pauseMillis = 14_000
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
const start = async (databaseUrl: string, sql: PgClient.PgClient) => {
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
  const reservations = sql`SELECT FROM holds WHERE kind = 'reservation'`
  return {
    upstream,
    first,
    second,
    reservations: () => Effect.runPromise(Effect.map(reservations, ({ length }) => length)),
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
  const state = { isBusy: true, made: 2 * each }
  const clients = Array.from({ length: 2 * each }, (_, n) => {
    const isStream = n % 2 === 0
    const client = { key: often, isStream, ...chat(often, isStream) }
    const again = async (): Promise<Answer> => {
      const answer = await client.done
      if (!state.isBusy) return answer
      state.made += 1
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
  return { own, often, calls, made: { [own]: 2 * each, [often]: state.made } }
}

/**
 * The wallets of these keys once they hold nothing and this many of the calls that the vendor held back were charged,
 * after an audit that found no drift.
 */
const settled = async (
  { get, second }: Bench,
  calls: ReadonlyArray<{ readonly trace: string }>,
  charges: Readonly<Record<string, number>>
) => {
  const traces = new Set(calls.map(({ trace }) => trace))
  const isCharged = (it: Receipt) => traces.has(it.trace_id) && Number(it.cost) > 0
  const receiptsOf = new Map<string, ReadonlyArray<Receipt>>()
  for (const [key, count] of Object.entries(charges)) {
    const receipts = await until(
      async () => {
        const { held_balance: held } = await get(key, "/wallet")
        const { data } = await get(key, "/calls?limit=100")
        const all: ReadonlyArray<Receipt> = data ?? []
        return held === "0.00" && all.filter(isCharged).length >= count ? all : undefined
      },
      { what: `${count} calls are charged and nothing is held`, millis: 60_000 }
    )
    receiptsOf.set(key, receipts)
  }
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
  const wallets = Array.from(receiptsOf, async ([key, receipts]) => {
    const { data } = await get(key, "/wallet/entries?kind=late_charge&limit=100")
    const late: ReadonlyArray<{ readonly amount: string }> = data ?? []
    const { settled_balance: balance } = await get(key, "/wallet")
    const charged = receipts.filter(isCharged)
    return { key, balance: Number(balance), charged, receipts, late }
  })
  return Promise.all(wallets)
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
  const answered = (key: string) => ended.filter((it) => it.key === key && it.status === 200).length
  const charges = { [own]: answered(own), [often]: answered(often) }
  for (const { balance, charged, key, late, receipts } of await settled(bench, calls, charges)) {
    assert.strictEqual(charged.length, charges[key])
    assert.isTrue(charged.every(({ outcome }) => outcome === "settled"))
    // Including calls that had ended but were not settled when their process was stopped
    assert.strictEqual(receipts.filter((it) => it.charged_late).length, late.length)
    if (key !== own) continue
    assert.strictEqual(late.length, each)
    const sum = late.reduce((all, { amount }) => all + Number(amount), 0)
    assert.closeTo(1000 - balance, sum, 0.001)
  }
}

/** Every client has its whole response, and each call was charged once and in time. */
const assertWhole = async (
  bench: Bench,
  { calls, made, often, own }: Awaited<ReturnType<typeof openCalls>>
) => {
  const answers: ReadonlyArray<Answer> = await Promise.all(calls.map(({ done }) => done))
  for (const [n, { status, text }] of answers.entries()) {
    assert.strictEqual(status, 200)
    if (calls[n]?.isStream === true) assert.match(text, / there[^]+\[DONE\]\n\n$/u)
  }
  const charges = { [own]: 2 * each, [often]: 2 * each }
  for (const { balance, charged, key, late } of await settled(bench, calls, charges)) {
    assert.isEmpty(late)
    assert.isTrue(charged.every(({ outcome }) => outcome === "settled"))
    assert.strictEqual(balance.toFixed(2), (1000 - cost * (made[key] ?? 0)).toFixed(2))
  }
}

const kept = async (bench: Bench) => {
  const open = await openCalls(bench)
  const pids = [bench.first.pid ?? 0, bench.second.pid ?? 0] as const
  for (const pid of pids) process.kill(pid, "SIGSTOP")
  bench.release()
  await pause((callLeaseSeconds + 1) * 1000)
  process.kill(pids[0], "SIGCONT")
  await Promise.all(open.calls.map(({ done }) => done))
  process.kill(pids[1], "SIGCONT")
  await assertWhole(bench, open)
}

const paused = async (bench: Bench) => {
  const open = await openCalls(bench)
  const pid = bench.first.pid ?? 0
  process.kill(pid, "SIGSTOP")
  await pause(pauseMillis)
  process.kill(pid, "SIGCONT")
  await pause(1000)
  bench.release()
  await assertWhole(bench, open)
}

/** One call with a key, started before or after the key was revoked. */
interface Call {
  readonly n: number
  readonly isLate: boolean
  readonly status: number
  readonly code: unknown
}

/** Makes calls through the process, several clients at a time, until each has made 20 after the key was revoked. */
const busy = (gateway: GatewayProcess, key: string, state: { readonly isRevoked: boolean }) => {
  const calls: Array<Call> = []
  let begun = 0
  const one = async (): Promise<Call> => {
    const n = (begun += 1)
    const isLate = state.isRevoked
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o", max_tokens: 1000, user: `call ${n}`, messages: [] })
    })
    const { code } = (await answer.json()) as { readonly code?: unknown }
    return { n, isLate, status: answer.status, code }
  }
  const client = async () => {
    for (let late = 0; late < 20;) {
      const call = await one()
      calls.push(call)
      if (call.isLate) late += 1
    }
  }
  return { calls, done: Promise.all(Array.from({ length: clientsCount }, client)) }
}

/** How a key's secret is ended, with the status of that request. */
type End = (second: GatewayProcess, at: string) => Promise<void>

const revoke: End = async (second, at) => {
  const revoked = await second.call("DELETE", at)
  assert.strictEqual(revoked.status, 204, revoked.text)
}

const rotate: End = async (second, at) => {
  const rotated = await second.call("POST", `${at}/rotate`, { grace_seconds: 0 })
  assert.strictEqual(rotated.status, 200, rotated.text)
}

/** A new key, busy in the first process and ended in the second. Returns the number of charged calls. */
const endedWhileBusy = async (
  { first, reservations, second, upstream: { seen } }: Bench,
  end: End
): Promise<number> => {
  const made = await second.call("POST", "/manage/v1/api-keys", { name: "busy" })
  assert.strictEqual(made.status, 201, made.text)
  const before = seen.length
  const state = { isRevoked: false }
  const { calls, done } = busy(first, made.json.key, state)
  await until(async () => seen.length > before + 100 && (await reservations()) > 0, {
    what: "a reservation that is drawn on"
  })
  await end(second, `/manage/v1/api-keys/${made.json.id}`)
  state.isRevoked = true
  await done

  const late = calls.filter(({ isLate }) => isLate)
  assert.isAtLeast(late.length, 20 * clientsCount)
  assert.deepEqual(
    new Set(late.map(({ code, status }) => `${status} ${code}`)),
    new Set(["401 1003"])
  )
  const sent = new Set(seen.slice(before).map(({ body }) => JSON.parse(body).user))
  assert.deepEqual(
    late.filter(({ n }) => sent.has(`call ${n}`)),
    []
  )
  const answered = calls.filter(({ status }) => status === 200).length
  assert.strictEqual(answered, seen.length - before)
  return answered
}

/** The first process reads its keys at a random time, so several keys are used in turn. */
const ends = [revoke, rotate, revoke, rotate]

const revokeKeys = async (bench: Bench) => {
  const { first, reservations, second } = bench
  second.useKey((await first.makeUser("10000.00")).key)
  let charged = 0
  for (const end of ends) {
    charged += await endedWhileBusy(bench, end)
  }
  const wallet = await until(
    async () => {
      const { json } = await second.call("GET", "/manage/v1/wallet")
      return json.held_balance === "0.00" ? json : undefined
    },
    { what: "a wallet that holds nothing" }
  )
  assert.strictEqual(await reservations(), 0)
  assert.strictEqual(wallet.settled_balance, (10_000 - cost * charged).toFixed(2))
  assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
}

describe("two processes on one store", () => {
  const scope = Scope.makeUnsafe()
  let bench: Bench
  beforeAll(async () => {
    const { href } = await Effect.runPromise(Scope.provide(processDatabaseUrl, scope))
    // One connection for all counts, because each connection is a server process
    const client = Layer.build(layerPostgres({ url: Redacted.make(href), maxConnections: 1 }))
    const context = await Effect.runPromise(Scope.provide(client, scope))
    bench = await start(href, Context.get(context, PgClient.PgClient))
  })
  afterAll(async () => {
    await bench[Symbol.asyncDispose]()
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  describe("a key that is busy at one and revoked or rotated at the other", () => {
    it(
      "is refused after that response: nothing is sent or held, and the sums are exact",
      () => revokeKeys(bench),
      180_000
    )
  })

  describe("a process that was paused for 14 s", () => {
    it("charges every call that it answers", () => paused(bench), 400_000)
  })

  describe("a process that was stopped for longer than the lease of its calls", () => {
    it(
      "ends calls that the other has released, which are charged once for what their clients received",
      () => released(bench),
      400_000
    )
    it("continues with holds that were not released", () => kept(bench), 400_000)
  })
})
