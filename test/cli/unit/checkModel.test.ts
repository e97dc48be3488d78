import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { runCommand } from "../../support/commandLine.ts"
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

  it.live("says which rules a body breaks, and which models there are not", () =>
    Effect.gen(function* () {
      const path = yield* file
      const faulty = yield* check(path, "runway/gen4.5", { prompt: "", seconds: 1 })
      assert.strictEqual(faulty.code, 1)
      assert.include(faulty.error, "#/seconds: Unknown field")
      assert.include(
        (yield* check(path, "runway/none", {})).error,
        "describes no model runway/none"
      )
    }).pipe(Effect.scoped)
  )
})
