import { Effect, Option } from "effect"
import { assert, describe, it } from "vitest"
import * as Credits from "../../../src/domain/Credits.ts"
import type { ApiKeyId } from "../../../src/domain/Ids.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import type { KeyChange } from "../../../src/users/ApiKeys.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { makeKey } from "../../support/callers.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** Limits of a cached key whose calls are drawn on a reservation (ADR 0116, 0160). */

const upstream = await upstreamOfTests(mockOpenAi())
upstream.script = openAiScript
const env = { OPENAI_API_KEY: "sk-vendor", OPENAI_BASE_URL: `${upstream.origin}/v1` }
const gateway = await gatewayOfTests(env, 100_000n)

/** The ledger of the user, newest first. */
const entriesOf = () =>
  gateway.run(
    Effect.flatMap(Wallet, (wallet) =>
      Effect.map(
        wallet.search(gateway.userId, { before: Option.none(), limit: 10_000 }),
        ({ rows }) => rows
      )
    )
  )

const run = <A, E>(effect: Effect.Effect<A, E, ApiKeys | Wallet>): Promise<A> =>
  gateway.run(effect as Effect.Effect<A, E, Wallet>)

interface Caller {
  readonly key: string
  readonly id: ApiKeyId
}

const newKey = (): Promise<Caller> =>
  run(
    Effect.gen(function* () {
      const { key, row } = yield* makeKey(gateway.userId, ["inference"])
      return { key, id: row.id }
    })
  )

const change = ({ id }: Caller, changed: KeyChange) =>
  run(Effect.flatMap(ApiKeys, (keys) => keys.update(Option.none(), id, changed)))

const shown = ({ id }: Caller) =>
  run(Effect.flatMap(ApiKeys, (keys) => keys.find(Option.none(), id)))

const credits = (amount: number) => Credits.make(BigInt(Math.round(amount * 1e6)))

const call = async ({ key }: Caller, over: object = {}, headers: Record<string, string> = {}) => {
  const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "gpt-4o", max_tokens: 1000, messages: [], ...over })
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text }
}
type Answer = Awaited<ReturnType<typeof call>>

/** Calls from ten clients, each sent as soon as the previous one has its response. */
const callOften = async (caller: Caller, calls: number, over?: (n: number) => object) => {
  const answers: Array<Answer> = []
  let begun = 0
  const client = async () => {
    while (begun < calls) {
      begun += 1
      answers.push(await call(caller, over?.(begun)))
    }
  }
  await Promise.all(Array.from({ length: 10 }, client))
  return answers
}

const codeOf = ({ text }: Answer): number => JSON.parse(text).code

/** Waits until nothing is held for the key. */
const settled = async (caller: Caller) => {
  for (let tries = 0; tries < 1000; tries += 1) {
    const row = await shown(caller)
    if (row.held === 0n) return row
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error("something is still held")
}

describe("a key with a spend limit that calls often", () => {
  it("draws calls and streams on a reservation, never spends more, and each response says what is left", async () => {
    const caller = await newKey()
    const limit = 120
    await change(caller, { spendLimit: credits(limit), reset: "never" })
    const before = (await entriesOf()).length
    const answers = await callOften(caller, 250, (n) => ({ stream: n % 7 === 0 }))
    const answered = answers.filter(({ status }) => status === 200)
    assert.isAbove(answered.length, 100)
    assert.strictEqual(answered.length, upstream.seen.length)
    const refused = answers.filter(({ status }) => status !== 200)
    assert.isAbove(refused.length, 0)
    for (const answer of refused) {
      assert.deepStrictEqual([answer.status, codeOf(answer)], [402, 1102])
      assert.isNull(answer.headers.get("retry-after"))
      assert.match(answer.text, /credits, and this call holds \d+\.\d\d/u)
    }
    for (const { headers } of answered) {
      const left = Number(headers.get("x-service-budget-remaining") ?? Number.NaN)
      assert.isTrue(left >= 0 && left < limit, `${left}`)
    }
    const { spent } = await settled(caller)
    const entries = (await entriesOf()).slice(0, -before)
    const captures = entries.filter(({ kind }) => kind === "capture")
    assert.strictEqual(captures.length, answered.length)
    assert.strictEqual(
      spent as bigint,
      captures.reduce((sum, { amount }) => sum + amount, 0n)
    )
    assert.isTrue(spent <= credits(limit))
    assert.isAbove(
      captures.filter(({ note }) => note !== null).length,
      20,
      "hardly a call was drawn"
    )
  })

  it("refuses calls that begin after the response to a new limit", async () => {
    const caller = await newKey()
    const busy = callOften(caller, 300)
    while (upstream.seen.length < 100) await new Promise((resolve) => setTimeout(resolve, 5))
    await change(caller, { spendLimit: credits(0), reset: "daily" })
    const late = await callOften(caller, 40, () => ({ user: "late" }))
    assert.deepStrictEqual(
      new Set(late.map((it) => `${it.status} ${codeOf(it)}`)),
      new Set(["402 1102"])
    )
    for (const { headers } of late) assert.isNotNull(headers.get("retry-after"))
    await busy
    assert.isEmpty(upstream.seen.filter(({ body }) => body.includes('"late"')))
    assert.strictEqual((await settled(caller)).spent, credits(0))
  })
})

describe("a cached key", () => {
  it("is limited to newly set models at once, whether its calls are drawn or held", async () => {
    for (const calls of [2, 100]) {
      const caller = await newKey()
      const before = await callOften(caller, calls)
      assert.isTrue(before.every(({ status }) => status === 200))
      await change(caller, { allowedModels: ["gpt-4o-mini"] })
      const sent = upstream.seen.length
      const refused = await callOften(caller, 20)
      for (const answer of refused) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [403, 1004])
      }
      assert.strictEqual(upstream.seen.length, sent)
      const allowed = await callOften(caller, 40, () => ({ model: "gpt-4o-mini" }))
      assert.isTrue(allowed.every(({ status }) => status === 200))
      await change(caller, { allowedModels: null })
      assert.strictEqual((await call(caller)).status, 200)
    }
  })

  it("respects X-Service-Max-Cost, which is not sent to the vendor", async () => {
    const caller = await newKey()
    assert.strictEqual((await call(caller)).status, 200)
    const refused = await call(caller, {}, { "x-service-max-cost": "1.00" })
    assert.deepStrictEqual([refused.status, codeOf(refused)], [402, 1103])
    assert.strictEqual((await call(caller, {}, { "x-service-max-cost": "1.10" })).status, 200)
    assert.strictEqual(upstream.seen.length, 2)
    for (const { headers } of upstream.seen) assert.notProperty(headers, "x-service-max-cost")
  })
})
