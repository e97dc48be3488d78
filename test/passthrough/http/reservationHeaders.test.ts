import { Effect, Option } from "effect"
import { assert, describe, it } from "vitest"
import * as Credits from "../../../src/domain/Credits.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"

/** Keys with frequent calls, which draw on a reservation (ADR 0116), over HTTP. */

const upstream = await upstreamOfTests(mockOpenAi())
upstream.script = openAiScript
const gateway = await gatewayOfTests({
  OPENAI_API_KEY: "sk-vendor",
  OPENAI_BASE_URL: `${upstream.origin}/v1`
})

type Caller = Awaited<ReturnType<typeof gateway.newCaller>>

const call = async ({ key }: Caller) => {
  const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-4o", max_tokens: 800, messages: [] })
  })
  await answer.arrayBuffer()
  return answer.status
}

/** Calls from several clients, each sent as soon as the previous one has its response. */
const callOften = async (caller: Caller, count: number) => {
  const statuses = new Map<number, number>()
  let calls = 0
  const client = async () => {
    while (calls < count) {
      calls += 1
      const status = await call(caller)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 10 }, client))
  return statuses
}

const wallet = ({ userId }: Caller) => gateway.run(Effect.flatMap(Wallet, (it) => it.get(userId)))

const entries = ({ userId }: Caller) =>
  gateway.run(
    Effect.flatMap(Wallet, (it) =>
      Effect.map(it.search(userId, { before: Option.none(), limit: 10_000 }), ({ rows }) => rows)
    )
  )

const released = async (caller: Caller) => {
  for (let tries = 0; tries < 1000; tries += 1) {
    const row = await wallet(caller)
    if (row.held === 0n) return row
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  throw new Error("something is still held")
}

describe("a key that calls often", () => {
  it("draws on a reservation up to the last call that its wallet covers; each call is charged once and has a receipt", async () => {
    const caller = await gateway.newCaller(100)
    const statuses = await callOften(caller, 250)
    assert.deepEqual([...statuses.keys()].toSorted(), [200, 402])
    assert.equal(statuses.get(200), upstream.seen.length)
    const { settled } = await released(caller)
    const ledger = await entries(caller)
    const captures = ledger.filter(({ kind }) => kind === "capture")
    assert.equal(captures.length, upstream.seen.length)
    assert.equal(new Set(captures.map(({ subjectId }) => subjectId)).size, captures.length)
    const cost = captures.reduce((sum, { amount }) => sum + amount, 0n)
    assert.equal(settled, 100n * Credits.microPerCredit - cost)
    assert.isTrue(settled >= 0n)
    // One more call of this size could not be held
    assert.equal(await call(caller), 402)
    assert.isTrue(
      captures.some(({ note }) => note !== null),
      "no call was drawn on a reservation"
    )
    const holds = new Set(ledger.filter(({ kind }) => kind === "hold").map((it) => it.subjectId))
    for (const { note, subjectId } of captures) assert.isTrue(holds.has(note ?? subjectId))
    const receipts = await gateway.run(
      Effect.flatMap(Metering, (it) =>
        Effect.map(it.search(caller.userId, { limit: 1000 }), ({ rows }) => rows)
      )
    )
    assert.equal(receipts.length, captures.length)
    assert.equal(
      receipts.reduce((sum, { captured }) => sum + captured, 0n),
      cost
    )
    assert.equal(await gateway.drift(), 0)
  })
})
