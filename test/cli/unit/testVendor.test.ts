import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { startVendorServer } from "../../../src/testing/index.ts"
import type { DescribedVendor } from "../../../src/testing/vendors/VendorServer.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedFal } from "../../support/upstreams/describedFal.ts"
import { describedKinds } from "../../support/upstreams/describedKinds.ts"

/** docs/vendors-as-files.md#go-live */

const folder = Effect.sync(() => temporaryFolder("test-vendor"))

const serving = (vendor: DescribedVendor) =>
  Effect.acquireRelease(
    Effect.promise(() => startVendorServer(vendor)),
    (server) => Effect.promise(() => server.stop())
  )

/** The test runner also sets `BASE_URL`. */
const settingsAt = (place: string) => ({
  BASE_URL: "http://localhost:8080",
  CATALOG_FILE: join(place, "catalog.json"),
  DATA_DIR: place
})

const test = (...args: ReadonlyArray<string>) => runCommand(["vendors", "test", ...args, "--json"])

describe("gateway vendors test", () => {
  it.live("makes one call with the configured key, and prints its cost", () =>
    Effect.gen(function* () {
      const place = yield* folder
      writeFileSync(
        join(place, "catalog.json"),
        JSON.stringify({ vendors: [describedFal, describedKinds] })
      )
      const server = yield* serving(describedFal)
      yield* withEnvironment({ ...settingsAt(place), ...server.env })
      const body = JSON.stringify({ prompt: "p", num_images: 2 })
      const made = yield* test("described-fal", "--body", body)
      assert.strictEqual(made.code, 0, made.error)
      const { charged, held, model, results } = JSON.parse(made.out)
      assert.deepStrictEqual([model, held, charged], ["described-fal/flux", "6.00", "6.00"])
      assert.lengthOf(results, 2)
      assert.strictEqual(server.sold, 1)
      assert.notInclude(made.error, server.key)

      const unknown = yield* test("described-fal", "--model", "none")
      assert.include(unknown.error, "has no such model")
      assert.include((yield* test("nobody")).error, "nobody has no media models")
      const keyless = yield* test("every-kind", "--model", "sketch")
      assert.include(keyless.error, "has no key")
      assert.strictEqual(server.sold, 1)
    }).pipe(Effect.scoped)
  )

  it.live("prints the class of a refusal, and buys nothing for an invalid body", () =>
    Effect.gen(function* () {
      const place = yield* folder
      writeFileSync(join(place, "catalog.json"), JSON.stringify({ vendors: [describedKinds] }))
      const server = yield* serving(describedKinds)
      yield* withEnvironment({
        ...settingsAt(place),
        ...server.env,
        EVERY_KIND_API_KEY: "another-key-0001"
      })
      const refused = yield* test("every-kind", "--model", "caption")
      assert.strictEqual(refused.code, 1)
      assert.include(refused.error, "AMBIGUOUS")
      const faulty = yield* test("every-kind", "--body", '{"prompt":""}')
      assert.include(faulty.error, "#/prompt")
      assert.strictEqual(server.sold, 0)
    }).pipe(Effect.scoped)
  )
})
