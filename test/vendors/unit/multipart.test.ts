import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { multipart } from "../../../src/vendors/Multipart.ts"

describe("a body of several parts", () => {
  it.effect("contains each text and each file unchanged, in order", () =>
    Effect.gen(function* () {
      // `FormData` would turn each line break into CRLF
      const prompt = 'A "lighthouse"\nat dawn\r\nin fog\ré 🌊'
      const bytes = Uint8Array.from({ length: 256 }, (_, value) => value)
      const { body, contentType } = yield* multipart([
        ["prompt", prompt],
        ["empty", ""],
        ["image[]", { name: "image0.png", mime: "image/png", bytes }]
      ])
      const form = yield* Effect.promise(() =>
        new Response(new Uint8Array(body), { headers: { "content-type": contentType } }).formData()
      )
      const [text, empty, file] = [...form]
      assert.deepStrictEqual(text, ["prompt", prompt])
      assert.deepStrictEqual(empty, ["empty", ""])
      assert.strictEqual(file?.[0], "image[]")
      const part = file?.[1]
      assert(part instanceof File)
      assert.deepStrictEqual([part.name, part.type], ["image0.png", "image/png"])
      assert.deepStrictEqual(new Uint8Array(yield* Effect.promise(() => part.arrayBuffer())), bytes)
    })
  )
})
