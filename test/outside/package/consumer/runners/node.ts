/** For `node --test`. */
import { MockVendor, startTestGateway, startVendorServer } from "generation-gateway/testing"
import assert from "node:assert/strict"
import { after, before, describe, it } from "node:test"
import { path } from "./path.ts"

describe("a program on the gateway", () => {
  let gateway: Awaited<ReturnType<typeof startTestGateway>>
  before(async () => {
    gateway = await startTestGateway({
      vendor: [MockVendor.refused("RATE_LIMITED", "slow down"), MockVendor.result("2 minutes")]
    })
  })
  after(() => gateway.close())

  it("orders a picture", async () => {
    const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" }
    const body = JSON.stringify({ prompt: "A lighthouse" })
    const created = await gateway.fetch(path, { method: "POST", headers, body })
    assert.equal(created.status, 202)
    await gateway.runUntilQuiet()
    assert.equal((await gateway.submits()).length, 2)
    assert.ok(gateway.now() >= 120_000)
  })

  it("calls a vendor on a port", async () => {
    const vendor = await startVendorServer("openai", { answer: () => "By the sea" })
    const answer = await fetch(`${vendor.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${vendor.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-4o", messages: [] })
    })
    assert.match(await answer.text(), /By the sea/u)
    assert.equal(vendor.sold, 1)
    await vendor.stop()
  })
})
