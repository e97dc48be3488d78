import { Effect, Option } from "effect"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import * as Credits from "../../../src/domain/Credits.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { Users } from "../../../src/users/Users.ts"
import { Wallet } from "../../../src/wallet/Wallet.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import type { MockVendor } from "../../support/mockVendors.ts"
import { startGateway } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

/** Keys with frequent calls, which draw on a reservation (ADR 0116), over HTTP. */

let upstream: MockVendor
let gateway: TestGateway

beforeAll(async () => {
  upstream = await mockOpenAi()
  upstream.script = openAiScript
  gateway = await startGateway({
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: `${upstream.origin}/v1`
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
})
beforeEach(() => {
  upstream.seen.length = 0
})

const run = <A, E>(effect: Effect.Effect<A, E, Users | Wallet | Metering | ApiKeys>): Promise<A> =>
  gateway.run(effect as Effect.Effect<A, E, Wallet>)

/** A new user with this many credits. */
const newCaller = (credits: bigint) =>
  run(
    Effect.gen(function* () {
      const user = yield* (yield* Users).create({
        email: `${crypto.randomUUID()}@example.com`,
        name: Option.none(),
        password: Option.none()
      })
      yield* (yield* Wallet).topUp({
        userId: user.id,
        amount: Credits.make(credits * Credits.microPerCredit),
        operationId: user.id,
        note: Option.none(),
        traceId: "0".repeat(32)
      })
      const { key, row } = yield* (yield* ApiKeys).create({
        userId: user.id,
        name: "often",
        scopes: ["inference"],
        expiresAt: Option.none()
      })
      return { userId: user.id, key, keyId: row.id }
    })
  )
type Caller = Awaited<ReturnType<typeof newCaller>>

const call = async ({ key }: Caller, tokens = 20) => {
  const answer = await fetch(`${gateway.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-4o", max_tokens: tokens, messages: [] })
  })
  await answer.arrayBuffer()
  return answer.status
}

/** Calls from several clients, each sent as soon as the previous one has its response, while the condition is true. */
const callOften = async (caller: Caller, goesOn: (calls: number) => boolean, tokens?: number) => {
  const statuses = new Map<number, number>()
  let calls = 0
  const client = async () => {
    while (goesOn(calls)) {
      calls += 1
      const status = await call(caller, tokens)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: 10 }, client))
  return statuses
}

const wallet = ({ userId }: Caller) => run(Effect.flatMap(Wallet, (it) => it.get(userId)))

const entries = ({ userId }: Caller) =>
  run(
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
  it("draws on a reservation; each call is charged once, with a receipt, and nothing stays held", async () => {
    const caller = await newCaller(5000n)
    const statuses = await callOften(caller, (calls) => calls < 200)
    assert.deepEqual([...statuses], [[200, upstream.seen.length]])
    const { settled } = await released(caller)
    const ledger = await entries(caller)
    const captures = ledger.filter(({ kind }) => kind === "capture")
    assert.equal(captures.length, upstream.seen.length)
    assert.equal(new Set(captures.map(({ subjectId }) => subjectId)).size, captures.length)
    const cost = captures.reduce((sum, { amount }) => sum + amount, 0n)
    assert.equal(settled, 5000n * Credits.microPerCredit - cost)
    assert.isTrue(
      captures.some(({ note }) => note !== null),
      "no call was drawn on a reservation"
    )
    const holds = new Set(ledger.filter(({ kind }) => kind === "hold").map((it) => it.subjectId))
    for (const { note, subjectId } of captures) assert.isTrue(holds.has(note ?? subjectId))
    const receipts = await run(
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

  it("is refused at once when it is revoked between its calls", async () => {
    const caller = await newCaller(5000n)
    const revocation = { isDone: false }
    const late = new Set<number>()
    let good = 0
    const client = async () => {
      for (let calls = 0; calls < 20 || !revocation.isDone; calls += 1) {
        const isLate = revocation.isDone
        const status = await call(caller)
        if (status === 200) good += 1
        if (isLate) late.add(status)
      }
      late.add(await call(caller))
    }
    const clients = Promise.all(Array.from({ length: 10 }, client))
    while (upstream.seen.length < 150) await new Promise((resolve) => setTimeout(resolve, 5))
    await run(Effect.flatMap(ApiKeys, (keys) => keys.revoke(caller.userId, caller.keyId)))
    revocation.isDone = true
    await clients
    assert.deepEqual([...late], [401])
    assert.equal(upstream.seen.length, good)
    await released(caller)
    assert.equal(await gateway.drift(), 0)
  })

  it("spends its wallet up to the last call that fits, and no further", async () => {
    const caller = await newCaller(100n)
    const statuses = await callOften(caller, (calls) => calls < 1000, 800)
    assert.deepEqual([...statuses.keys()].toSorted(), [200, 402])
    assert.equal(statuses.get(200), upstream.seen.length)
    const { settled } = await released(caller)
    const captures = (await entries(caller)).filter(({ kind }) => kind === "capture")
    assert.equal(captures.length, upstream.seen.length)
    assert.isTrue(settled >= 0n)
    // One more call of this size could not be held
    assert.equal(await call(caller, 800), 402)
    assert.equal(await gateway.drift(), 0)
  })
})
