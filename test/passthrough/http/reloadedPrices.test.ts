import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { adminToken } from "../../support/gateway.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { gatewayOfTests } from "../../support/passthroughGateway.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/catalog.md#reload, for cached keys and for keys that draw on a reservation. */

const file = join(temporaryFolder("catalog"), "catalog.json")
const completions = "/vendors/openai/v1/completions"

/** The credits for a million tokens and for a call. */
const write = (tokens: string, call: string | undefined, more: object = {}) => {
  const price = { per: "million_tokens", input: tokens, output: tokens }
  const limits = { outputTokensMax: 1000, inputTokensMax: 10_000 }
  const route = { vendor: "openai", provider: "openai", method: "POST", path: "/v1/completions" }
  writeFileSync(
    file,
    JSON.stringify({
      tokenModels: [{ vendor: "openai", model: "teller", price, ...limits, ...more }],
      routes: call === undefined ? [] : [{ ...route, meter: { per: "call", amount: call } }]
    })
  )
}

const reload = async (): Promise<string> => {
  const response = await fetch(`${gateway.origin}/manage/v1/catalog/reload`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}` }
  })
  const body = (await response.json()) as { hash: string }
  assert.equal(response.status, 200, JSON.stringify(body))
  return body.hash
}

const upstream = await upstreamOfTests(mockOpenAi())
write("1000000", "1.00")
const gateway = await gatewayOfTests(
  {
    OPENAI_API_KEY: "sk-vendor",
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
    CATALOG_FILE: file,
    ADMIN_TOKEN: adminToken
  },
  1_000_000n
)

const chat = {
  model: "teller",
  max_tokens: 600,
  messages: [{ role: "user", content: "x".repeat(1500) }]
}

/** A response, read to its end. */
const ask = async (path: string, body: unknown) => {
  const response = await gateway.post(path, body)
  await response.arrayBuffer()
  return response
}

const receipts = async () => {
  await gateway.settled()
  return gateway.calls()
}

describe("a reload while calls are made", () => {
  it("changes the cost of the next call, and closes a route that was removed", async () => {
    const first = await reload()
    await ask(completions, {})
    const before = await ask(completions, {})
    assert.equal(before.headers.get("x-service-cost"), "1.00")
    write("1000000", "2.00")
    const second = await reload()
    const after = await ask(completions, {})
    assert.equal(after.headers.get("x-service-cost"), "2.00")
    const named = (await receipts()).map(({ captured, catalog }) => [Number(captured), catalog])
    assert.deepEqual(named.slice(0, 3), [
      [2_000_000, second],
      [1_000_000, first],
      [1_000_000, first]
    ])
    write("1000000", undefined)
    await reload()
    assert.equal((await ask(completions, {})).status, 404)
  })

  it("announces the end of a model in its responses", async () => {
    write("1000000", "1.00", { sunset: "2026-12-11", deprecation: "2026-11-22" })
    await reload()
    await ask("/v1/chat/completions", chat)
    const response = await ask("/v1/chat/completions", chat)
    assert.equal(response.headers.get("sunset"), "Fri, 11 Dec 2026 00:00:00 GMT")
    assert.equal(response.headers.get("deprecation"), "@1795305600")
  })

  it("settles each call of a busy key by one catalog, which its receipt names", async () => {
    const costOf = new Map<string, bigint>()
    const callOften = async (times: number, clients = 8) => {
      await Promise.all(
        Array.from({ length: clients }, async () => {
          for (let call = 0; call < times; call += 1) {
            assert.equal((await ask("/v1/chat/completions", chat)).status, 200)
          }
        })
      )
    }
    await until(
      async () => {
        // So many that even a slow machine completes sixteen of them within a second
        await callOften(2, 20)
        return (await gateway.entries()).some(({ note }) => note !== null)
      },
      { what: "a call that is drawn on a reservation" }
    )
    const before = (await receipts()).length
    for (const price of [1, 2, 3]) {
      write(`${price}000000`, "1.00")
      // While calls are running
      const [hash] = await Promise.all([reload(), callOften(3)])
      costOf.set(hash, BigInt(price))
    }
    const all = (await receipts()).slice(0, -before)
    assert.equal(all.length, 72)
    const known = new Set(costOf.keys())
    const ours = all.filter(({ catalog }) => known.has(catalog ?? ""))
    assert.isAbove(ours.length, 40)
    for (const { captured, catalog, usage } of ours) {
      const tokens = BigInt(Number(usage?.["inputTokens"]) + Number(usage?.["outputTokens"]))
      assert.equal(captured, tokens * costOf.get(catalog ?? "")! * 1_000_000n)
      assert.notProperty(usage, "catalog")
    }
    assert.equal(await gateway.drift(), 0)
  })
})
