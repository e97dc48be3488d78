import { afterAll, assert, describe, it } from "vitest"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { json, upstreamOfTests } from "../../support/mockVendors.ts"
import { startGateway, jsonOf } from "../../support/passthroughGateway.ts"
import type { TestGateway } from "../../support/passthroughGateway.ts"

const chat = { model: "gpt-4o", max_tokens: 600, messages: [{ role: "user", content: "Hi" }] }
const path = "/v1/chat/completions"
const first = await upstreamOfTests(mockOpenAi())
const second = await upstreamOfTests(mockOpenAi())
const started: Array<TestGateway> = []

/** A gateway with two accounts, `a` with three shares and `b` with one, at two mock upstreams. */
const start = async (env: Record<string, string> = {}) => {
  const gateway = await startGateway({
    OPENAI_API_KEY: [
      `sk-secret-aaaa;weight=3;name=a;base=${first.origin}/v1`,
      `sk-secret-bbbb;name=b;base=${second.origin}/v1`
    ].join(","),
    ...env
  })
  started.push(gateway)
  return gateway
}

afterAll(async () => {
  for (const gateway of started) await gateway.stop()
})

const options = { timeout: 120_000 }

describe("several accounts of a vendor", options, async () => {
  /** For the tests after which both accounts are free, and the one after them. */
  const shared = await start({ UPSTREAM_TIMEOUT: "1 second" })

  it("share the calls by their weights, each with its own key", async () => {
    for (let i = 0; i < 8; i += 1) await shared.post(path, chat)
    assert.deepEqual([first.seen.length, second.seen.length], [6, 2])
    assert.equal(first.seen[0]!.headers.authorization, "Bearer sk-secret-aaaa")
    assert.equal(second.seen[0]!.headers.authorization, "Bearer sk-secret-bbbb")
  })

  it("an error that quotes a client's text cannot disable an account", async () => {
    for (const message of ["Invalid value: 'API key not valid'", "No: credit balance is too low"]) {
      first.script = (_, response) => json(response, 400, { error: { message, code: "bad" } })
      second.script = first.script
      assert.equal((await shared.post(path, chat)).status, 400)
    }
    assert.notMatch(await shared.metrics(), /gateway_account_paused_seconds\{[^}]*\} [1-9]/)
    await shared.settled()
  })

  it("a call that may have been executed does not go to the other account", async () => {
    for (const script of [
      () => {},
      (_: unknown, response: { destroy: () => void }) => response.destroy(),
      (_: unknown, response: Parameters<typeof json>[0]) => json(response, 500, {})
    ]) {
      first.script = script
      second.script = script
      const before = first.seen.length + second.seen.length
      await shared.post(path, chat)
      assert.equal(first.seen.length + second.seen.length, before + 1)
    }
    await shared.settled()
  })

  it("a rate-limited call goes to the other account, and the limit lasts as long as the vendor says", async () => {
    first.script = (_, response) =>
      json(response, 429, { error: { message: "slow down" } }, { "retry-after": "30" })
    for (let i = 0; i < 4; i += 1) assert.equal((await shared.post(path, chat)).status, 200)
    assert.equal(first.seen.length, 1)
    assert.match(await shared.metrics(), /gateway_account_paused_seconds\{account="openai:a"\} 2\d/)
    second.script = first.script
    const relayed = await shared.post(path, chat)
    assert.equal(relayed.status, 429)
    assert.equal(relayed.headers.get("retry-after"), "30")
    // The vendor decides about the last account
    const again = await shared.post(path, chat)
    assert.equal(again.status, 429)
    assert.equal((await jsonOf(again)).error.message, "slow down")
    assert.equal(again.headers.get("retry-after"), "30")
    assert.equal(first.seen.length + second.seen.length, 7)
  })

  it("an account that the vendor refuses is an operator fault, whatever the status of the refusal", async () => {
    const gateway = await start()
    first.script = (_, response) =>
      json(response, 429, { error: { message: "You exceeded", code: "insufficient_quota" } })
    for (let i = 0; i < 4; i += 1) assert.equal((await gateway.post(path, chat)).status, 200)
    assert.equal(first.seen.length, 1)
    assert.match(
      await gateway.metrics(),
      /gateway_account_paused_seconds\{account="openai:a"\} [2-6]\d/
    )
    second.script = first.script
    const last = await gateway.post(path, chat)
    assert.equal(last.status, 503)
    assert.equal((await jsonOf(last)).code, 5003)
    await gateway.settled()
  })

  it("an account that cannot be reached fails no call, and its circuit opens", async () => {
    const down = await mockOpenAi()
    await down.close()
    const gateway = await start({
      OPENAI_API_KEY: [
        `sk-secret-down;weight=9;name=down;base=${down.origin}/v1`,
        `sk-secret-bbbb;name=b;base=${second.origin}/v1`
      ].join(",")
    })
    for (let i = 0; i < 8; i += 1) assert.equal((await gateway.post(path, chat)).status, 200)
    assert.match(await gateway.metrics(), /gateway_account_circuit\{account="openai:down"\} 2/)
    assert.match(await gateway.metrics(), /gateway_account_circuit\{account="openai:b"\} 0/)
    await gateway.settled()
  })

  it("no key is in any log line, metric, response or receipt", async () => {
    for (const gateway of started) {
      const receipts = JSON.stringify(await gateway.calls(), (_, value) =>
        typeof value === "bigint" ? String(value) : value
      )
      const all = [...gateway.logs, await gateway.metrics(), receipts].join("\n")
      assert.notInclude(all, "sk-secret")
      assert.notInclude(all, gateway.key)
      assert.isAbove(gateway.logs.length, 0)
    }
  })
})
