import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { falModel, replicateModel } from "../../../src/catalog/jobs/PublishedModel.ts"
import { runCommand } from "../../support/commandLine.ts"
import { falImages, replicateImages } from "../../support/publishedModels.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedFal } from "../../support/upstreams/describedFal.ts"

/** docs/vendors-as-files.md#job-vendors */

const file = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = temporaryFolder("check-model")
    writeFileSync(
      join(folder, "catalog.json"),
      JSON.stringify({ vendors: ["runway", describedFal] })
    )
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
).pipe(Effect.map((folder) => join(folder, "catalog.json")))

const check = (path: string, model: string, body: object) =>
  runCommand(["models", "check", model, "--file", path, "--body", JSON.stringify(body), "--json"])

describe("gateway models check", () => {
  it.live("runs a described model at a server that plays its vendor, and shows each request", () =>
    Effect.gen(function* () {
      const path = yield* file
      const made = yield* check(path, "runway/gen4_image", { prompt: "p", ratio: "1280:720" })
      assert.strictEqual(made.code, 0, made.error)
      assert.include(made.error, "/v1/text_to_image")
      assert.include(made.error, '"promptText":"p"')
      assert.notInclude(made.error, "described-test-key")
      const document = JSON.parse(made.out)
      assert.strictEqual(document.held, "5.00")
      assert.lengthOf(document.results, 1)
      const several = yield* check(path, "described-fal/flux", { prompt: "p", num_images: 2 })
      assert.strictEqual(several.code, 0, several.error)
      assert.lengthOf(JSON.parse(several.out).results, 2)
      assert.strictEqual(JSON.parse(several.out).charged, "6.00")
    }).pipe(Effect.scoped)
  )

  it.live("runs an imported model at a server of fal or Replicate", () =>
    Effect.gen(function* () {
      const path = yield* file
      const rowOf = (vendor: string, imported: ReturnType<typeof falModel>) => {
        const { notes: _, ...row } = Result.getOrThrow(imported)
        return { vendor, model: "m", ...row, price: { per: "call", amount: "2.00" } }
      }
      const mediaModels = [
        rowOf("fal", falModel({ id: "acme-ai/brush/edit", document: falImages })),
        rowOf("replicate", replicateModel({ id: "a/flux", document: replicateImages }))
      ]
      writeFileSync(path, JSON.stringify({ mediaModels }))
      const image_urls = ["https://example.com/a.png"]
      const edited = yield* check(path, "fal/m", { prompt: "A hat", image_urls, num_images: 2 })
      assert.strictEqual(edited.code, 0, edited.error)
      assert.include(edited.error, "/acme-ai/brush/edit")
      assert.include(edited.error, '"image_size":"landscape_4_3"')
      assert.lengthOf(JSON.parse(edited.out).results, 2)
      const made = yield* check(path, "replicate/m", { prompt: "A hat" })
      assert.strictEqual(made.code, 0, made.error)
      assert.include(made.error, "/v1/models/a/flux/predictions")
      assert.strictEqual(JSON.parse(made.out).charged, "2.00")
    }).pipe(Effect.scoped)
  )

  it.live("names the rules that a body breaks, and a model that does not exist", () =>
    Effect.gen(function* () {
      const path = yield* file
      const faulty = yield* check(path, "runway/gen4.5", { prompt: "", seconds: 1 })
      assert.strictEqual(faulty.code, 1)
      assert.include(faulty.error, "#/seconds: Unknown field")
      assert.include(
        (yield* check(path, "runway/none", {})).error,
        "does not describe the model runway/none"
      )
    }).pipe(Effect.scoped)
  )
})
