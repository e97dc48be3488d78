import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { makeUpstreamCatalog } from "../../../src/catalog/UpstreamCatalog.ts"
import { makeSimulator } from "../../../src/sandbox/UpstreamSimulator.ts"

const catalog = makeUpstreamCatalog()
const simulate = makeSimulator(() => catalog)

const embeddings = (inputs: number, model = "text-embedding-3-small") =>
  simulate("openai", {
    method: "POST",
    path: "/v1/embeddings",
    query: "",
    headers: [],
    body: Buffer.from(
      JSON.stringify({
        model,
        input: Array.from({ length: inputs }, (_, n) => `text ${n}`)
      })
    ),
    model: "",
    user: "",
    key: "",
    route: {
      vendor: "openai",
      provider: "openai",
      method: "POST",
      path: "/",
      meter: { per: "nothing" }
    },
    watch: undefined
  })

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

it.live("embeddings leave turns of the event loop to other requests", () =>
  Effect.gen(function* () {
    const many = yield* Effect.forkChild(embeddings(400))
    let turns = 0
    while (many.pollUnsafe() === undefined) {
      yield* turn
      turns += 1
    }
    assert.isAtLeast(turns, 100)
    const { body } = yield* Fiber.join(many)
    assert.instanceOf(body, Buffer)
    const { data } = JSON.parse(body.toString())
    assert.deepStrictEqual([data.length, data[399].embedding.length], [400, 1536])
  })
)

it.live("embeddings have the default dimensions of their model", () =>
  Effect.gen(function* () {
    const dimensions = []
    for (const model of ["text-embedding-3-small", "text-embedding-3-large", "mistral-embed"]) {
      const { body } = yield* embeddings(1, model)
      assert.instanceOf(body, Buffer)
      dimensions.push(JSON.parse(body.toString()).data[0].embedding.length)
    }
    assert.deepStrictEqual(dimensions, [1536, 3072, 1024])
  })
)
