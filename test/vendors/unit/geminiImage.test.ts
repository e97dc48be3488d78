import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { accountAt, request } from "../../support/upstreams/accounts.ts"

/** docs/reference/vendors.md#gemini-images */

const image = (byte: number, more: object = {}) => ({
  inlineData: { mimeType: "image/png", data: Buffer.of(byte).toString("base64") },
  ...more
})

it.effect("the last picture of a response that is not a thought comes first", () =>
  Effect.gen(function* () {
    const parts = [
      image(1, { thought: true }),
      image(2),
      { text: "The light is still too cold" },
      image(3),
      image(4, { thought: true })
    ]
    const json = { candidates: [{ content: { parts }, finishReason: "STOP" }] }
    const account = yield* accountAt("gemini-image", "https://vendor.test", "k", {
      http: () =>
        Effect.succeed({ status: 200, headers: {}, body: Buffer.from(JSON.stringify(json)) })
    })
    const submitted = yield* account.submit(
      request("image-edit-pro", "gemini-3-pro-image", { prompt: "p" })
    )
    const items = submitted._tag === "Done" ? submitted.result.items : []
    assert.deepStrictEqual(
      items.map((item) => item._tag === "Bytes" && item.bytes[0]),
      [3, 2]
    )
  })
)
