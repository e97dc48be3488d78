import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Locator } from "playwright-core"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { consoleGateway, operatorPage, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { opened } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { png } from "../../support/media.ts"
import { Running } from "../../support/running.ts"

/** The most frequent jobs, and how many clicks from Home they take. docs/console-design.md#aims */

const hook = "https://127.0.0.1/hook"
const path = "/vendors/alibaba/v1/text-to-image-max/generation"

interface Job {
  readonly it: ConsolePage
  /** Counts clicks. Choosing from a list and choosing a file each count as one click. */
  readonly click: (what: Locator) => Promise<void>
  readonly count: () => void
}

const link = ({ it: { page } }: Job, name: string | RegExp) =>
  page.getByRole("link", { name, ...(typeof name === "string" ? { exact: true } : {}) }).first()

const button = ({ it: { page } }: Job, name: string | RegExp) =>
  page.getByRole("button", { name, ...(typeof name === "string" ? { exact: true } : {}) }).first()

const createKey = async (job: Job) => {
  const { page } = job.it
  const dialog = page.getByRole("dialog")
  await job.click(link(job, "Keys"))
  await job.click(button(job, "Create key"))
  await page.keyboard.type("program")
  await job.click(dialog.getByRole("button", { name: "Create key" }))
  await job.click(dialog.getByRole("button", { name: "Copy API key" }))
  await dialog.getByText("Copied").waitFor()
}

const firstImage = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "New image"))
  await page.getByLabel("Prompt (required)").fill("A lighthouse")
  await job.click(button(job, "Run"))
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
}

const editImage = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "New image"))
  await page.getByLabel("Model").selectOption("alibaba/image-edit")
  job.count()
  await page.getByLabel(/for Images/u).setInputFiles({
    name: "own.png",
    mimeType: "image/png",
    buffer: Buffer.from(png({ width: 500, height: 500 }))
  })
  job.count()
  await page.getByText("own.png").first().waitFor()
  await page.getByLabel("Prompt (required)").fill("A hat")
  await job.click(button(job, "Run"))
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
}

const chat = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "New chat"))
  await page.getByLabel("Message (required)").fill("Hello")
  await job.click(button(job, "Send"))
  await page.getByText(/credits · \d+ tokens in/u).waitFor()
}

const whyFailed = async (job: Job) => {
  const { page } = job.it
  await job.click(page.getByRole("row").filter({ hasText: "Failed" }).getByRole("link").first())
  await page.locator(".problem-title").waitFor()
}

/** The receiver fails until it is fixed. */
const receiver = { status: 500 }

const resend = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "A webhook endpoint is failing"))
  const again = button(job, /^Resend whd_/u)
  await again.waitFor()
  // Not earlier, because the first retry is sent after 15 seconds
  receiver.status = 200
  await job.click(again)
  await page.getByRole("cell", { name: "Delivered" }).first().waitFor()
}

const testEndpoint = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "Webhooks"))
  await job.click(button(job, /^Send test event/u))
  await page.getByText("Test delivered, HTTP 200").waitFor()
}

const spendByKey = async (job: Job) => {
  const { page } = job.it
  await job.click(link(job, "This month by key"))
  await page.getByRole("columnheader", { name: "Key" }).waitFor()
  await page
    .getByRole("cell", { name: /\d+\.\d\d/u })
    .first()
    .waitFor()
}

const topUp = async (job: Job) => {
  const { page } = job.it
  const dialog = page.getByRole("dialog")
  await job.click(link(job, "Users"))
  await job.click(button(job, "Top up user@localhost"))
  await dialog.getByLabel("Amount").fill("12.5")
  await dialog
    .getByText(/^user@localhost: [\d,.]+ credits available, afterward [\d,.]+$/u)
    .waitFor()
  await job.click(dialog.getByRole("button", { name: "Top up" }))
  await dialog.waitFor({ state: "detached" })
}

/** Given a trace id, the field in the bar leads to what it belongs to, as its user sees it. */
const findTrace = (traceId: string) =>
  async function findTrace(job: Job) {
    const { page } = job.it
    await job.click(button(job, /^Search or go to…/u))
    await page.getByRole("combobox", { name: "Search or go to…" }).fill(traceId)
    await page.getByRole("option", { name: `Open ${traceId}` }).waitFor()
    await page.keyboard.press("Enter")
    await opened(job.it, "A traced lighthouse")
    await page.getByText("You are viewing the pages of user@localhost, read-only.").waitFor()
  }

liveLayer(
  consoleGateway({}, () => Effect.sync(() => mockOutcome(receiver.status))),
  "120 seconds"
)("the jobs that people come for", (it) => {
  /** Starts at Home, with at most this many clicks. */
  const run = (screen: ConsolePage, clicksMax: number, story: (job: Job) => Promise<void>) =>
    Effect.promise(async () => {
      await screen.open("")
      await opened(screen, "Home")
      let clicks = 0
      const count = () => {
        clicks += 1
      }
      const click = async (what: Locator) => {
        count()
        await what.click()
      }
      await story({ it: screen, click, count })
      assert.isAtMost(clicks, clicksMax, story.name)
    })

  it.effect(
    "take a user a few clicks from Home",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const screen = yield* userPage({ width: 1440 })
        yield* run(screen, 2, firstImage)
        yield* run(screen, 4, createKey)
        yield* run(screen, 4, editImage)
        yield* run(screen, 2, chat)
        const send = (to: string, body: unknown) =>
          Effect.promise(async () => {
            const response = await fetch(`${url}${to}`, {
              method: "POST",
              headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
              body: JSON.stringify(body)
            })
            assert.isTrue(response.ok, await response.text())
          })
        const events = ["task.failed"]
        yield* send("/manage/v1/webhook-endpoints", { url: hook, events })
        yield* send(path, { prompt: "[[sim:fail]]" })
        yield* Effect.promise(async () => {
          await screen.open("/webhooks")
          await screen.page.getByText(/^Failing: HTTP 500/u).waitFor()
        })
        yield* run(screen, 2, whyFailed)
        yield* run(screen, 3, resend)
        yield* run(screen, 2, testEndpoint)
        yield* run(screen, 1, spendByKey)
        assert.deepStrictEqual(screen.faults, [])
      }),
    180_000
  )

  it.effect(
    "take an operator as few clicks",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const screen = yield* operatorPage({ width: 1440 })
        yield* run(screen, 3, topUp)
        const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
        yield* Effect.promise(() =>
          fetch(`${url}${path}`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
              traceparent: `00-${traceId}-00f067aa0ba902b7-01`
            },
            body: JSON.stringify({ prompt: "A traced lighthouse" })
          })
        )
        yield* run(screen, 1, findTrace(traceId))
        assert.deepStrictEqual(screen.faults, [])
      }),
    180_000
  )
})
