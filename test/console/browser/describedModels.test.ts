import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { consoleGateway, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { assertPage } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { png } from "../../support/media.ts"
import { call } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { describedDoors } from "../../support/upstreams/describedDoors.ts"

/** docs/vendors-as-files.md: a described model is tried in the console like any other. */

const timeout = 180_000
const folder = temporaryFolder("described-console")
const catalog = join(folder, "catalog.json")
/** A vendor whose polls report progress. */
const reporting = {
  name: "reporting",
  base: "https://reporting.example",
  jobs: {
    submit: { path: "/jobs", json: {}, handle: { id: "$.id" } },
    poll: { path: "/jobs/{id}" },
    state: { at: "$.status", running: ["running"], done: ["done"], failed: ["failed"] },
    progress: { at: "$.progress", of: 1 },
    results: { urls: ["$.files"] },
    error: { message: ["$.message"] },
    failures: [],
    models: [
      {
        model: "slow",
        result: "videos",
        body: {
          type: "object",
          properties: { prompt: { type: "string", minLength: 1, maxLength: 100 } },
          required: ["prompt"],
          additionalProperties: false
        },
        price: { per: "call", amount: "1.00" }
      }
    ]
  }
}
writeFileSync(catalog, JSON.stringify({ vendors: [describedDoors, reporting] }))

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
  await assertPage(it)
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 10.00 credits").waitFor()
  await page.locator("video").first().waitFor()
  await assertPage(it)
}

/** A number outside the bounds of the schema is rejected at its field. */
const song = async (it: ConsolePage) => {
  const { page } = it
  await choose(it, "song")
  await page.getByLabel("Prompt (required)").fill("A song")
  await page.getByText("Advanced").click()
  await page.getByLabel("Seconds", { exact: true }).fill("99")
  await page.locator(".field-error").waitFor()
  await assertPage(it)
  await page.getByLabel("Seconds", { exact: true }).fill("4")
  await page.getByText("2.00 credits").waitFor()
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 2.00 credits").waitFor()
  await page.locator("audio").first().waitFor()
  await assertPage(it)
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
  await page.getByText("picture.png").first().waitFor()
  await page.getByRole("button", { name: "Run", exact: true }).click()
  await page.getByText("Charged: 0.50 credits").waitFor()
  await assertPage(it)
}

/** The progress of a running task is shown, and updated while the page is open. */
const progressIsShown = async (it: ConsolePage, open: () => Promise<void>) => {
  const { page } = it
  job.progress = 0.42
  await open()
  await page.getByText("42% done").waitFor()
  await assertPage(it)
  job.progress = 0.7
  await page.getByText("70% done").waitFor()
  job.status = "failed"
  await page.getByText("The job ended upstream").waitFor()
}

const job = { id: "j", status: "running", progress: 0 }

const gateway = Layer.unwrap(
  Effect.map(
    localServer((_, response) => {
      response.setHeader("content-type", "application/json").end(JSON.stringify(job))
    }),
    (url) =>
      consoleGateway({ CATALOG_FILE: catalog, REPORTING_API_KEY: "key", REPORTING_BASE_URL: url })
  )
)

liveLayer(gateway, "120 seconds")("a described model in the console", (it) => {
  it.effect(
    "has a form built from its schema, and shows a live price, results and progress",
    () =>
      Effect.gen(function* () {
        const screen = yield* userPage({ width: 1440, height: 900 })
        for (const story of [film, song, caption]) yield* Effect.promise(() => story(screen))
        const response = yield* call("/vendors/reporting/v1/slow/generation", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ prompt: "A lighthouse" })
        })
        assert.strictEqual(response.status, 202)
        const { task_info: task } = JSON.parse(yield* Effect.promise(() => response.text()))
        yield* Effect.promise(() => progressIsShown(screen, () => screen.open(`/tasks/${task.id}`)))
        assert.deepStrictEqual(screen.faults, [])
      }),
    timeout
  )
})
