import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/catalog.md#catalog-file: the service serves what the file lists, without code. */

const fileOf = (content: unknown): string => {
  const file = join(temporaryFolder("catalog"), "catalog.json")
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
  return file
}

const longestName = "m".repeat(128)

const catalog = fileOf({
  change: {
    "text-to-image-max": {
      model: "acme-image-max",
      vendor: "acme",
      price: { per: "image", amount: "8.25" }
    }
  },
  remove: ["video-edit-plus"],
  add: [
    { label: "image-edit-pro", model: "acme-edit", action: "generation" },
    { label: "text-to-image-preview", model: longestName }
  ],
  routes: [
    {
      vendor: "openai",
      provider: "openai",
      method: "POST",
      path: "/v1/completions",
      meter: { per: "call", amount: "1.50" }
    }
  ]
})

const pathOf = (vendor: string, model: string) => `/vendors/${vendor}/v1/${model}/generation`

describe("CATALOG_FILE", () => {
  liveLayer(runningGateway({ CATALOG_FILE: catalog }))((it) => {
    it.effect(
      "a renamed model is served under its new path at its new price, and its old path is 404",
      () =>
        Effect.gen(function* () {
          const path = pathOf("acme", "acme-image-max")
          const task = yield* finishedTask(path, { prompt: "a" })
          assert.strictEqual(task.images?.length, 1)
          const quote = yield* call(`${path}?dry_run=true`, json({ prompt: "a" }))
          assert.deepStrictEqual(yield* Effect.promise(() => quote.json()), {
            quote: { amount: "8.25", currency: "credits" }
          })
          const old = yield* call(pathOf("alibaba", "text-to-image-max"), json({ prompt: "a" }))
          assert.strictEqual(old.status, 404)
        })
    )
    it.effect("an added model has the body of its family, and a removed one is not found", () =>
      Effect.gen(function* () {
        const added = pathOf("google", "acme-edit")
        const bad = yield* call(added, json({ prompt: "a", images: [] }))
        assert.strictEqual(bad.status, 400)
        const good = yield* call(
          `${added}?dry_run=true`,
          json({ prompt: "a", images: ["https://example.com/a.png"] })
        )
        assert.strictEqual(good.status, 200)
        const removed = yield* call(pathOf("alibaba", "video-edit-plus"), json({ prompt: "a" }))
        assert.strictEqual(removed.status, 404)
        const problem = (yield* Effect.promise(() => removed.json())) as { code: number }
        assert.strictEqual(problem.code, 2006)
      })
    )
    it.effect("a model with the longest name is served", () =>
      Effect.gen(function* () {
        const task = yield* finishedTask(pathOf("alibaba", longestName), { prompt: "a", n: 1 })
        assert.strictEqual(task.images?.length, 1)
      })
    )
    it.effect("the OpenAPI document shows the catalog that is served", () =>
      Effect.gen(function* () {
        const answer = yield* call("/openapi.json")
        const { paths } = (yield* Effect.promise(() => answer.json())) as { paths: object }
        assert.include(JSON.stringify(paths), "1.50 credits a call")
        assert.containsAllKeys(paths, [
          pathOf("acme", "acme-image-max"),
          pathOf("google", "acme-edit"),
          "/vendors/openai/v1/completions"
        ])
        assert.doesNotHaveAnyKeys(paths, [
          pathOf("alibaba", "text-to-image-max"),
          pathOf("alibaba", "video-edit-plus")
        ])
      })
    )
  })

  const startWith = (content: unknown) => {
    const file = fileOf(content)
    const start = Layer.build(runningGateway({ CATALOG_FILE: file })).pipe(Effect.scoped)
    return Effect.map(Effect.flip(start), (error) =>
      String((error as Error).message).replace(file, "FILE")
    ).pipe(Effect.provide(NodeServices.layer))
  }
  const remedy = "Correct the file, or unset CATALOG_FILE to use the built-in catalog"

  it.live(
    "a wrong file stops the start with an error that names the place, the fault and the remedy",
    () =>
      Effect.gen(function* () {
        assert.strictEqual(
          yield* startWith({ remove: ["nothing"] }).pipe(
            Effect.map((text) => text.replace(/one of .*, got/u, "one of …, got"))
          ),
          `CATALOG_FILE FILE: #/remove/0: Expected one of …, got "nothing" (line 1). ${remedy}`
        )
        assert.match(
          yield* startWith({
            change: { "text-to-image-max": { price: { per: "image", amount: -1 } } }
          }),
          /^CATALOG_FILE FILE: #\/change\/text-to-image-max\/price.*Correct the file/
        )
        assert.match(
          yield* startWith("{"),
          /^CATALOG_FILE FILE: #: .*\(line 1\)\. Correct the file/
        )
        assert.match(
          yield* startWith({ add: [{ label: "image-edit", model: "image-edit" }] }),
          /Two models have the path \/vendors\/alibaba\/v1\/image-edit\/generation/
        )
      })
  )
})
