import OpenAI from "openai"
import { assert, it } from "vitest"
import { MockVendor, startVendorServer } from "../../src/testing/index.ts"

it("a vendor that is busy once, as its own client sees it", async () => {
  await using vendor = await startVendorServer("openai", {
    script: {
      "gpt-4o": [MockVendor.refused("RATE_LIMITED", "slow down"), MockVendor.result(0)],
      "gpt-image-2": [MockVendor.refused("CONTENT", "not this")]
    },
    answer: () => "A lighthouse at dawn"
  })
  const client = new OpenAI({ apiKey: vendor.key, baseURL: `${vendor.url}/v1` })
  const { choices } = await client.chat.completions.create({
    model: "gpt-4o",
    messages: [{ role: "user", content: "What do you see?" }]
  })
  assert.strictEqual(choices[0]?.message.content, "A lighthouse at dawn")
  // The client came again by itself
  assert.strictEqual(vendor.requests.length, 2)
  const refused = client.images.generate({ model: "gpt-image-2", prompt: "A lighthouse" })
  assert.match(String(await refused.catch(String)), /not this/u)
})
