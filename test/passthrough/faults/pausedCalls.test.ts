import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"

/** Longer than a process without a heartbeat owns tasks, and shorter than the lease of its calls. */
const pauseMillis = 14_000
/** The cost of a call with the mock's usage. */
const cost = 0.7
const clients = 8

const paused = async (databaseUrl: string) => {
  const upstream = await mockOpenAi()
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey((await first.makeUser("10000.00")).key)
  const own = (await second.makeUser("10000.00")).key
  const chat = async (key: string) =>
    fetch(`${first.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o", max_tokens: 1000, messages: [] })
    }).then(async (answer) => (await answer.arrayBuffer(), answer.status))

  // A key with frequent calls draws on a reservation
  const key = await second.key()
  const state = { isBusy: true }
  const statuses: Array<number> = []
  const client = async () => {
    while (state.isBusy) statuses.push(await chat(key))
  }
  const busy = Promise.all(Array.from({ length: clients }, client))
  await until(() => upstream.seen.length > 300, {
    what: "300 calls",
    millis: 100_000
  })
  let answer = () => {}
  const gate = new Promise<void>((resolve) => (answer = resolve))
  let held = 0
  upstream.script = async (request, response) => {
    held += 1
    await gate
    return openAiScript(request, response)
  }
  // A call with a separate hold
  const single = chat(own)
  await until(() => held === clients + 1, { what: "calls at the vendor" })
  state.isBusy = false
  process.kill(first.pid ?? 0, "SIGSTOP")
  await pause(pauseMillis)
  process.kill(first.pid ?? 0, "SIGCONT")
  await pause(1000)
  answer()
  await busy
  assert.strictEqual(await single, 200)
  assert.deepStrictEqual([...new Set(statuses)], [200])
  assert.strictEqual(statuses.length + 1, upstream.seen.length)
  const wallet = (of: GatewayProcess, token: string) =>
    until(async () => {
      const answered = await fetch(`${of.url}/manage/v1/wallet`, {
        headers: { authorization: `Bearer ${token}` }
      })
      const found = (await answered.json()) as Record<string, string>
      return found["held_balance"] === "0.00" ? found["settled_balance"] : undefined
    })
  assert.strictEqual(await wallet(second, own), (10_000 - cost).toFixed(2))
  assert.strictEqual(await wallet(second, key), (10_000 - cost * statuses.length).toFixed(2))
  assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
  await upstream.close()
}

describe("a process that was paused for 14 s beside another", () => {
  it.live(
    "charges every call that it answers",
    () =>
      Effect.gen(function* () {
        const { href } = yield* processDatabaseUrl
        yield* Effect.promise(() => paused(href))
      }),
    300_000
  )
})
