import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { consoleGateway, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { looks } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedDoors } from "../../support/upstreams/describedDoors.ts"

/** docs/vendors-as-files.md: a described model is tried in the console like any other. */

const timeout = 180_000
const folder = temporaryFolder("described-console")
const catalog = join(folder, "catalog.json")
writeFileSync(catalog, JSON.stringify({ vendors: [describedDoors] }))

const choose = async ({ page }: ConsolePage, model: string) => {
  await page.getByRole("link", { name: "Playground", exact: true }).first().click()
  await page.getByRole("heading", { level: 1, name: "Playground", exact: true }).waitFor()
  await page.getByLabel("Model").selectOption(`doors/${model}`)
}

/** A video: choices from its schema, its first frame as a file, and its live price. */
const film = async (it: ConsolePage) => {
  const { page } = it
  await choose(it, "film")
  await page.getByLabel("Prompt (required)").fill("A lighthouse")
  await page.getByText("5.00 credits").waitFor()
  await page.getByText("Advanced").click()
  await page.getByLabel("Duration", { exact: true }).selectOption("10")
  await page.getByText("10.00 credits").waitFor()
  await page.getByLabel(/for First frame/iu).setInputFiles({
    name: "first.png",
    mimeType: "image/png",
    buffer: Buffer.from(png({ width: 64, height: 64 }))
  })
  await page.getByText("first.png").first().waitFor()
  await looks(it)
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 10.00 credits").waitFor()
  await page.locator("video").first().waitFor()
  await looks(it)
}

/** A number outside the bounds of the schema is rejected at its field. */
const song = async (it: ConsolePage) => {
  const { page } = it
  await choose(it, "song")
  await page.getByLabel("Prompt (required)").fill("A song")
  await page.getByText("Advanced").click()
  await page.getByLabel("Seconds", { exact: true }).fill("99")
  await page.locator(".field-error").waitFor()
  await looks(it)
  await page.getByLabel("Seconds", { exact: true }).fill("4")
  await page.getByText("2.00 credits").waitFor()
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 2.00 credits").waitFor()
  await page.locator("audio").first().waitFor()
  await looks(it)
}

/** A description of a picture: a document. */
const caption = async (it: ConsolePage) => {
  const { page } = it
  await choose(it, "caption")
  await page.getByLabel(/for Picture/iu).setInputFiles({
    name: "picture.png",
    mimeType: "image/png",
    buffer: Buffer.from(png({ width: 64, height: 64 }))
  })
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 0.50 credits").waitFor()
  await looks(it)
}

describe("a described model in the playground", () => {
  liveLayer(
    consoleGateway({ CATALOG_FILE: catalog }),
    "120 seconds"
  )((it) => {
    it.effect(
      "has a form of its schema, a price as one types, and shows what it makes",
      () =>
        Effect.gen(function* () {
          const screen = yield* userPage({ width: 1440, height: 900 })
          for (const story of [film, song, caption]) yield* Effect.promise(() => story(screen))
          assert.deepStrictEqual(screen.faults, [])
        }),
      timeout
    )
  })
})
