import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option } from "effect"
import { Label } from "../../../src/catalog/bodies/Bodies.ts"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { CatalogError } from "../../../src/catalog/CatalogSource.ts"
import { format } from "../../../src/domain/Credits.ts"

const current = Effect.map(Catalog, (catalog) => catalog.current())
const builtIn = current.pipe(Effect.provide(Catalog.layer))

const withFile = (content: unknown) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* files.makeTempFileScoped()
    yield* files.writeFileString(
      path,
      typeof content === "string" ? content : JSON.stringify(content)
    )
    return yield* current.pipe(Effect.provide(Catalog.layerFile(path)))
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

const failure = (content: unknown) => Effect.flip(withFile(content))

/** docs/reference/vendors.md#gemini-sources, docs/reference/vendors.md#openai-sources */
const shutDown = ["gemini-3-pro-image-preview", "gpt-image-1", "sora-2", "sora-2-pro"]

describe("Catalog.layer", () => {
  it.effect("names no upstream model that its vendor has shut down", () =>
    Effect.map(builtIn, ({ all }) => {
      for (const { upstreamModel } of all) assert.notInclude(shutDown, upstreamModel)
    })
  )

  it.effect("has each label once, under its name", () =>
    Effect.map(builtIn, ({ all }) => {
      assert.sameMembers(
        all.map(({ label }) => label),
        [...Label.literals]
      )
      assert.isTrue(all.every(({ label, model }) => label === model))
    })
  )
  it.effect("finds a model by vendor, name and action only", () =>
    Effect.map(builtIn, ({ find }) => {
      assert.isTrue(Option.isSome(find("service", "text-to-video-spark", "generation")))
      assert.isTrue(Option.isSome(find("google", "image-edit-pro", "edit")))
      assert.isTrue(Option.isNone(find("google", "image-edit-pro", "generation")))
      assert.isTrue(Option.isNone(find("alibaba", "text-to-video-spark", "generation")))
      assert.isTrue(Option.isNone(find("alibaba", "image-edit", "edit")))
      assert.isTrue(Option.isNone(find("__proto__", "constructor", "edit")))
    })
  )
})

describe("Catalog.layerFile", () => {
  it.effect("an empty object changes nothing", () =>
    Effect.map(withFile({}), ({ all }) => assert.strictEqual(all.length, 9))
  )
  it.effect("renames, reprices, adds and removes models", () =>
    Effect.gen(function* () {
      const { all, find } = yield* withFile({
        change: {
          "text-to-image-max": {
            model: "qwen-image-max",
            price: { per: "image", amount: "8.00" }
          }
        },
        remove: ["video-edit-plus"],
        add: [{ label: "image-edit", model: "wan2.6-edit", upstreamModel: "wan2.6-i2i" }]
      })
      assert.strictEqual(all.length, 9)
      const renamed = Option.getOrThrow(find("alibaba", "qwen-image-max", "generation"))
      assert.strictEqual(renamed.label, "text-to-image-max")
      assert.strictEqual(renamed.price.per === "image" && format(renamed.price.amount), "8.00")
      assert.strictEqual(renamed.upstreamModel, "qwen-image-max")
      const added = Option.getOrThrow(find("alibaba", "wan2.6-edit", "generation"))
      assert.strictEqual(added.upstreamModel, "wan2.6-i2i")
      assert.strictEqual(added.adapter, "dashscope-async")
      assert.isTrue(Option.isNone(find("alibaba", "text-to-image-max", "generation")))
      assert.isTrue(Option.isNone(find("alibaba", "video-edit-plus", "generation")))
    })
  )
  it.effect("names the place of a fault in the file, the fault and the remedy", () =>
    Effect.gen(function* () {
      const error = yield* failure({
        change: { "image-edit": { price: { per: "image", amount: "free" }, colour: 1 } },
        remove: ["nothing"],
        add: [{ label: "image-edit" }]
      })
      assert.instanceOf(error, CatalogError)
      assert.includeMembers("errors" in error ? error.errors.map(({ pointer }) => pointer) : [], [
        "#/change/image-edit/price/amount",
        "#/change/image-edit/colour",
        "#/remove/0",
        "#/add/0/model"
      ])
      assert.include(error.message, "CATALOG_FILE")
      assert.include(error.message, "unset CATALOG_FILE")
      assert.notInclude(error.message, "\n")
    })
  )
  it.effect("refuses a price per second for a model whose results have no duration", () =>
    Effect.gen(function* () {
      const price = { per: "second", amount: "5.00" }
      const laterPrices = [{ from: "2027-01-01", price }]
      const error = yield* failure({
        change: {
          "image-edit": { price },
          "text-to-image-max": { laterPrices },
          "text-to-video-spark": { result: "images" },
          "image-to-video-spark": { price, laterPrices }
        },
        add: [{ label: "image-edit-max", model: "own", price }]
      })
      assert.instanceOf(error, CatalogError)
      assert.sameMembers("errors" in error ? error.errors.map(({ pointer }) => pointer) : [], [
        "#/change/image-edit/price/per",
        "#/change/text-to-image-max/laterPrices/0/price/per",
        "#/change/text-to-video-spark/result",
        "#/add/0/price/per"
      ])
    })
  )
  it.effect("refuses text that is not JSON, a missing file and two models on one path", () =>
    Effect.gen(function* () {
      assert.include((yield* failure("{")).message, "JSON")
      assert.include((yield* failure([])).message, "Expected an object")
      const twice = yield* failure({ add: [{ label: "image-edit", model: "image-edit" }] })
      assert.include(twice.message, "Two models have the path /vendors/alibaba/v1/image-edit")
      const missing = yield* Catalog.pipe(
        Effect.provide(
          Layer.provide(Catalog.layerFile("/nowhere/catalog.json"), NodeFileSystem.layer)
        ),
        Effect.flip
      )
      assert.include(missing.message, "Cannot be read (NotFound)")
    })
  )
})
