import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { docsBlock } from "../../test/support/webhookDocs.ts"

const source = join(import.meta.dirname, "main.go")
const isGoHere = spawnSync("go", ["version"]).status === 0

describe("main.go", () => {
  // test/webhooks/contract/receiverExamples.test.ts runs that one where Go is
  it("is the receiver of docs/webhooks.md", () => {
    assert.strictEqual(readFileSync(source, "utf8"), docsBlock("go receiver"))
  })

  if (isGoHere) {
    it("compiles", () => {
      const { status, stderr } = spawnSync("go", ["vet", source], { encoding: "utf8" })
      assert.strictEqual(status, 0, stderr)
    }, 120_000)
  } else {
    it("names id, time and body in the order of the signature (Go is not here: not compiled)", () => {
      const text = readFileSync(source, "utf8")
      const parts = [
        "Webhook-Id",
        "Webhook-Timestamp",
        "hmac.New(sha256.New",
        '"v1="',
        "hmac.Equal"
      ]
      for (const part of parts) assert.include(text, part)
    })
  }
})
