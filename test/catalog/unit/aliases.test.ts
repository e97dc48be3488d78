import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { FileSystem } from "effect"
import { inOrderOf, shownEntry } from "../../../src/catalog/AliasTargets.ts"
import { makeVersion, readStored } from "../../../src/catalog/CatalogContent.ts"
import { builtIn, readFile } from "../../../src/catalog/CatalogSource.ts"

const read = Effect.fnUntraced(function* (file: object) {
  const files = yield* FileSystem.FileSystem
  const path = yield* files.makeTempFileScoped()
  yield* files.writeFileString(path, JSON.stringify(file))
  return yield* readFile(path)
})

const fast = { label: "text-to-image-max", vendor: "fal", model: "flux-dev", adapter: "fal-queue" }
const add = [{ ...fast, upstreamModel: "fal-ai/flux/dev" }]
const max = { model: "alibaba/text-to-image-max" }
const flux = { model: "fal/flux-dev" }

const faultsOf = (aliases: ReadonlyArray<object>, more: object = {}) =>
  Effect.map(Effect.flip(read({ add, aliases, ...more })), (error) =>
    error._tag === "CatalogError"
      ? error.errors.map(
          ({ detail, pointer }) => `${pointer}: ${detail.replace(/ \(line 1\)$/u, "")}`
        )
      : []
  )

it.layer(NodeServices.layer)("aliases of a catalog file", (it) => {
  it.effect("are found at the vendor of their first model, for tasks and for calls", () =>
    Effect.gen(function* () {
      const aliases = [
        { alias: "fast-image", to: [max, flux] },
        { alias: "chat", vendor: "openai", to: [{ model: "openai/gpt-4o" }] }
      ]
      const version = makeVersion(yield* read({ add, aliases }), 1)
      const found = version.findAlias("alibaba", "fast-image", "generation")
      assert.deepStrictEqual(
        Option.map(found, ({ targets }) => targets.map(({ model }) => model.model)),
        Option.some(["text-to-image-max", "flux-dev"])
      )
      assert.isTrue(Option.isNone(version.findAlias("alibaba", "fast-image", "edit")))
      assert.strictEqual(version.upstream.aliasOf("openai", "chat")?.targets.length, 1)
      assert.strictEqual(version.upstream.aliasOf("anthropic", "chat"), undefined)
    })
  )

  it.effect("are refused with the place of every fault", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* faultsOf([
          { alias: "a", to: [max, { model: "fal/nothing" }, max] },
          { alias: "text-to-image-max", to: [max] },
          { alias: "b", vendor: "alibaba", to: [{ model: "alibaba/a" }] },
          { alias: "a", to: [{ ...max, weight: 2 }, flux] },
          { alias: "c", to: [max, { model: "alibaba/image-edit" }] },
          { alias: "gpt-4o-latest", to: [{ model: "openai/gpt-4o" }] },
          { alias: "d", to: [{ model: "openai/gpt-4o" }, { model: "anthropic/claude-opus-4-5" }] },
          { alias: "e", to: [max, { model: "openai/gpt-4o" }] }
        ]),
        [
          "#/aliases/0/to/1/model: There is no model fal/nothing",
          "#/aliases/0/to/2/model: alibaba/text-to-image-max is listed twice",
          "#/aliases/1/alias: A model alibaba/text-to-image-max already exists",
          "#/aliases/2/to/0/model: alibaba/a is an alias: an alias can only refer to models",
          "#/aliases/3/alias: An alias alibaba/a already exists",
          "#/aliases/3/to/1/weight: Expected a weight: other models of this alias have one",
          "#/aliases/4/to/1/model: Its body is that of image-edit at /generation with images, but the first model's is that of text-to-image-max at /generation with images",
          "#/aliases/5/alias: A model openai/gpt-4o-latest already exists",
          "#/aliases/6/to/1/model: It has no route of the dialect of the preceding models (openai-chat, openai-responses)",
          "#/aliases/7/to/1/model: Expected either models that create media or models charged by the token"
        ]
      )
    })
  )

  it.effect("have at least one model, and weights from 1", () =>
    Effect.gen(function* () {
      const faults = yield* faultsOf([
        { alias: "a", to: [] },
        { alias: "b", to: [{ ...max, weight: 0 }] },
        { alias: "c", to: [{ model: "text-to-image-max" }] },
        { alias: "d", to: Array.from({ length: 9 }, () => max) }
      ])
      assert.deepStrictEqual(
        faults.map((it) => it.split(":")[0]),
        ["#/aliases/0/to", "#/aliases/1/to/0/weight", "#/aliases/2/to/0/model", "#/aliases/3/to"]
      )
      assert.match(faults[0]!, /at least one model/u)
    })
  )

  it.effect("are shown at the highest price, whatever the units", () =>
    Effect.gen(function* () {
      const video = { label: "text-to-video-spark", vendor: "fal", adapter: "fal-queue" }
      const film = (model: string, price: object) => ({
        ...video,
        model,
        upstreamModel: model,
        price
      })
      const models = [
        film("clip", { per: "call", amount: "30.00" }),
        film("reel", { per: "second", amount: "10.00" }),
        film("short", { per: "second", amount: "5.00" })
      ]
      const shownFor = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
        const aliases = [{ alias: "film", to: names.map((name) => ({ model: `fal/${name}` })) }]
        const version = makeVersion(yield* read({ add: models, aliases }), 1)
        const found = Option.getOrThrow(version.findAlias("fal", "film", "generation"))
        return shownEntry(found).price.per
      })
      // 5 seconds are 50.00 and 25.00
      assert.strictEqual(yield* shownFor(["clip", "reel"]), "second")
      assert.strictEqual(yield* shownFor(["short", "clip"]), "call")
    })
  )

  it.effect(
    "do not change the hash of a catalog without them, so that older releases can read it",
    () =>
      Effect.gen(function* () {
        assert.strictEqual((yield* read({ aliases: [] })).hash, builtIn.hash)
        const stored = yield* read({ add, aliases: [{ alias: "a", to: [max, flux] }] })
        assert.isTrue(readStored(stored.hash, stored.text)._tag === "Success")
      })
  )
})

describe("the order of an alias", () => {
  const model = (name: string) => ({ vendor: "v", model: name })

  it("is that of the list if there are no weights", () => {
    const targets = ["a", "b", "c"].map((it) => ({ model: model(it), weight: undefined }))
    assert.deepStrictEqual(
      inOrderOf(targets, "any").map((it) => it.model),
      ["a", "b", "c"]
    )
  })

  it("is drawn by the id if there are weights: the same for the same id, and as often as the weights say", () => {
    const targets = [
      { model: model("a"), weight: 3 },
      { model: model("b"), weight: 1 }
    ]
    const firsts = Array.from({ length: 4000 }, (_, n) => inOrderOf(targets, `task ${n}`)[0]!.model)
    const again = Array.from({ length: 4000 }, (_, n) => inOrderOf(targets, `task ${n}`)[0]!.model)
    assert.deepStrictEqual(firsts, again)
    assert.closeTo(firsts.filter((it) => it === "a").length / 4000, 0.75, 0.03)
  })
})
