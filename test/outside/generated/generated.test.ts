import { assert, beforeAll, describe, it } from "vitest"
import { worlds } from "../support/worlds.ts"
import { compile, generate, generators } from "./generators.ts"
import type { Gateway, Outcome } from "./programs/outcome.ts"

const [sandbox] = worlds()

describe.each(generators)("a client made by $name", (generator) => {
  beforeAll(() => generate(generator))

  it("compiles under strict", () => compile(generator))

  it("prices, creates and polls", async () => {
    const program = `./programs/${generator.program}`
    const { createAndPoll }: { createAndPoll: (gateway: Gateway) => Promise<Outcome> } =
      await import(program)
    assert.isDefined(sandbox)
    const { id, images, quote, status } = await createAndPoll(sandbox)
    assert.match(id, /^[0-9a-f-]{36}$/u)
    assert.strictEqual(status, "completed")
    assert.strictEqual(quote, "7.50")
    assert.lengthOf(images, 1)
    const picture = await fetch(images[0] ?? "")
    assert.strictEqual(picture.headers.get("content-type"), "image/png")
  })
})
