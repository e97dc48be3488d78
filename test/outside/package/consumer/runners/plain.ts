/** For plain vitest. */
import { MockVendor, startTestGateway, startVendorServer } from "generation-gateway/testing"
import { expect, it } from "vitest"
import { path } from "./path.ts"

/** The first start on a machine creates a template, which takes more than vitest's 5 seconds. */
it("orders a picture that the vendor refuses", { timeout: 60_000 }, async () => {
  await using gateway = await startTestGateway({
    vendor: { "text-to-image-max": [MockVendor.refused("CONTENT", "not this")] }
  })
  const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" }
  const body = JSON.stringify({ prompt: "A lighthouse" })
  const created = await gateway.fetch(path, { method: "POST", headers, body })
  expect(created.status).toBe(202)
  await gateway.runUntilQuiet()
  expect(await gateway.snapshot()).toContain("not this")
})

it("has vendors on a port, which refuse a script that the vendor cannot follow", async () => {
  await using vendor = await startVendorServer("fal")
  expect((await fetch(`${vendor.url}/fal-ai/flux/dev`, { method: "POST" })).status).toBe(401)
  const script = [MockVendor.jobFails("OPERATOR", "no")] as const
  await expect(startVendorServer("fal", { script })).rejects.toThrow(RangeError)
})
