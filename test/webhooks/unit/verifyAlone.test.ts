import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { signatureSkewSecondsMax } from "../../../src/domain/limits/Limits.ts"

const text = readFileSync(
  new URL("../../../src/webhooks/verifyWebhook.ts", import.meta.url),
  "utf8"
)

describe("verifyWebhook.ts, for receivers on any runtime", () => {
  it("imports nothing, and has the tolerance of the service", () => {
    assert.notMatch(text, /^import |\bimport\(/mu)
    assert.include(text, `const signatureSkewSeconds = ${signatureSkewSecondsMax}\n`)
  })
})
