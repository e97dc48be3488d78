import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { HttpResult } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { processDatabaseUrl } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const limit = 100
const clients = 8

/** The cost of the mock's usage, and the hold for it; nothing is rounded. */
const cost = 0.7

interface Spent {
  readonly calls: number
  readonly tasks: number
  readonly refused: number
}

/** Calls without a pause, with an occasional task, until the limit has refused often. */
const spend = async (gateway: GatewayProcess, token: string): Promise<Spent> => {
  const counted = { calls: 0, tasks: 0, refused: 0 }
  const send = async (path: string, body: object) => {
    const answer = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    const { code } = (await answer.json()) as { readonly code?: number }
    if (answer.status === 402) {
      assert.strictEqual(code, 1102)
      counted.refused += 1
      return false
    }
    assert.include([200, 202], answer.status)
    return true
  }
  const client = async (_: unknown, n: number) => {
    for (let turn = n; counted.refused < 60; turn += 1) {
      if (turn % 40 === 0) {
        if (await send(image, { prompt: `${turn} [[sim:hang]]` })) counted.tasks += 1
      } else if (await send("/v1/chat/completions", chat)) counted.calls += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return counted
}

const chat = { model: "gpt-4o", max_tokens: 1000, messages: [] }

const shownKey = async (gateway: GatewayProcess, at: string) => {
  const { json } = (await gateway.call("GET", at)) as HttpResult
  return json as Record<string, string>
}

const scenario = async (databaseUrl: string) => {
  const upstream = await mockOpenAi()
  const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
  await using first = await GatewayProcess.start({ databaseUrl, env })
  await using second = await GatewayProcess.start({ databaseUrl, env })
  second.useKey((await first.makeUser("10000.00")).key)
  const { json: made } = await second.call("POST", "/manage/v1/api-keys", { name: "limited" })
  const at = `/manage/v1/api-keys/${made.id}`
  // Both processes know the key and have a reservation for it before it gets a limit
  const before = await Promise.all([first, second].map((it) => callOften(it, made.key)))
  const sent = upstream.seen.length
  assert.strictEqual(
    sent,
    before.reduce((a, b) => a + b, 0)
  )
  const spendLimit = { spend_limit: String(limit), reset: "never" }
  const limited = await second.call("PATCH", at, spendLimit)
  assert.strictEqual(limited.status, 200, limited.text)

  const spent = await Promise.all([first, second].map((it) => spend(it, made.key)))
  const calls = spent.reduce((sum, it) => sum + it.calls, 0)
  const tasks = spent.reduce((sum, it) => sum + it.tasks, 0)
  assert.strictEqual(upstream.seen.length - sent, calls)
  assert.isAtMost(calls * cost + tasks * 7.5, limit)
  assert.isAbove(calls, 20)
  assert.isAbove(tasks, 0)
  const held = (tasks * 7.5).toFixed(2)
  const shown = await until(
    async () => {
      const shown = await shownKey(second, at)
      return shown["held"] === held ? shown : undefined
    },
    { what: "settled calls" }
  )
  assert.strictEqual(shown["spent"], (calls * cost).toFixed(2))
  assert.strictEqual(shown["remaining"], (limit - calls * cost - tasks * 7.5).toFixed(2))
  assert.match((await second.call("GET", "/metrics")).text, /^gateway_wallet_drift 0$/mu)
  await upstream.close()
}

const callOften = async (gateway: GatewayProcess, token: string) => {
  let answered = 0
  const client = async () => {
    for (let n = 0; n < 15; n += 1) {
      const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(chat)
      })
      await answer.arrayBuffer()
      if (answer.status === 200) answered += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return answered
}

describe("the spend limit of a key that is busy at two processes", () => {
  it.live(
    "is never exceeded by drawn calls, held calls and tasks together, and counts what they cost",
    () =>
      Effect.gen(function* () {
        const database = yield* processDatabaseUrl
        yield* Effect.promise(() => scenario(database.href))
      }),
    180_000
  )
})
