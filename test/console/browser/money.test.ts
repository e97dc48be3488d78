import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { showDay, showFullDay } from "../../../src/console/format/days.ts"
import { consoleGateway, consolePage, signInOnPage, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { act, goTo, hostile, assertPage, opened } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { Running } from "../../support/running.ts"

const model = "text-to-image-max"

/** The response to a program that uses this key. */
const create = (url: string, key: string) =>
  fetch(`${url}/vendors/alibaba/v1/${model}/generation`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "A lighthouse" })
  }).then(async (response) => {
    await response.text()
    return response.status
  })

const fileOf = async ({ page }: ConsolePage) => {
  const download = page.waitForEvent("download")
  await page.getByRole("link", { name: "Download CSV" }).click()
  return readFile(await (await download).path(), "utf8")
}

const secretShown = async ({ page }: ConsolePage) => {
  const dialog = page.getByRole("dialog", { name: "Your API key" })
  const secret = await dialog.locator("code").first().textContent()
  await dialog.getByRole("button", { name: "Copy API key" }).click()
  await dialog.getByText("Copied").waitFor()
  await dialog.getByRole("button", { name: "Done" }).click()
  assert.match(secret ?? "", /^sk-\w{46}$/u)
  return secret ?? ""
}

/** A key with a budget that is used up, raised, rotated and revoked. */
const keys = async (it: ConsolePage, url: string) => {
  const { page } = it
  await goTo(it, "Keys")
  await assertPage(it)
  await page.getByRole("button", { name: "Create key" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("Name").fill("<b>robot</b>")
  await dialog.getByText("Limits, models and expiry").click()
  await dialog.getByLabel("Budget in credits").fill("5,00")
  await dialog.getByText("Enter an amount with").waitFor()
  await dialog.getByLabel("Budget in credits").fill("5")
  await dialog.getByLabel("Requests per minute").fill("600")
  await dialog.getByLabel("Add a model").selectOption(model)
  assert.deepStrictEqual(await it.axeFindings(), [])
  await dialog.getByRole("button", { name: "Create key" }).click()
  const first = await secretShown(it)
  await page.getByRole("cell", { name: "5.00 left" }).waitFor()
  assert.notInclude(await page.content(), first)
  await page.getByText("<b>robot</b>").waitFor()
  assert.strictEqual(await create(url, first), 402)
  await act(it, "<b>robot</b>", "Change <b>robot</b>")
  await dialog.getByLabel("Budget in credits").fill("20")
  await dialog.getByRole("button", { name: "Save" }).click()
  await dialog.waitFor({ state: "detached" })
  assert.strictEqual(await create(url, first), 202)
  // The page is updated by the wallet's event
  await page.getByRole("cell", { name: "12.50 left" }).waitFor()
  await page.getByRole("img", { name: "7.50 of 20.00 credits used" }).waitFor()
  await assertPage(it)
  await act(it, "<b>robot</b>", "Rotate <b>robot</b>")
  await dialog.getByLabel("Keep the old secret valid for").selectOption("an hour")
  await dialog.getByRole("button", { name: "Rotate" }).click()
  const second = await secretShown(it)
  await page.getByText("Old secret ends").waitFor()
  assert.notStrictEqual(second, first)
  assert.strictEqual(await create(url, second), 202)
  await act(it, "<b>robot</b>", "Revoke <b>robot</b>")
  await dialog.getByRole("button", { name: "Revoke" }).click()
  await page.getByText("<b>robot</b>", { exact: true }).waitFor({ state: "detached" })
  assert.strictEqual(await create(url, second), 401)
}

const usage = async (it: ConsolePage) => {
  const { page } = it
  // Usage counts charges
  await goTo(it, "Tasks")
  await page.getByRole("cell", { name: "Completed" }).nth(1).waitFor()
  await goTo(it, "Usage")
  await page.getByRole("cell", { name: model }).waitFor()
  await assertPage(it)
  const csv = await fileOf(it)
  assert.include(csv, model)
  const today = new Date().toISOString().slice(0, 10)
  const chart = page.getByRole("slider")
  const said = async () => (await chart.getAttribute("aria-valuetext")) ?? ""
  assert.strictEqual(await said(), `${showDay(today)}: 15.00`)
  // The durations per hour: the median and a high percentile of the requests
  await page.getByRole("button", { name: "Today" }).click()
  await page.getByRole("button", { name: "Duration" }).click()
  await page.getByText(/95% of the requests did not exceed/u).waitFor()
  assert.match(await said(), /^[A-Z][a-z]{2} \d+, \d\d:00: [\d.]+ m?s/u)
  await assertPage(it)
  const groups = page.getByRole("group", { name: "Group by" })
  await groups.getByRole("button", { name: "Hour", exact: true }).click()
  await page.getByRole("columnheader", { name: "p95" }).waitFor()
  assert.match(await said(), /; p50 [\d.]+ m?s; p95 [\d.]+ m?s$/u)
  await assertPage(it)
  await page.getByRole("button", { name: "Errors" }).click()
  assert.match(await said(), /: 0$/u)
  await goTo(it, "Usage")
  await page.getByRole("cell", { name: model }).waitFor()
  await chart.press("Enter")
  await page.getByRole("heading", { name: `On ${showFullDay(today)}` }).waitFor()
  assert.include(page.url(), `day=${today}`)
  await page.getByRole("cell", { name: model }).waitFor()
  await page.getByRole("button", { name: "Key + model" }).click()
  await page.getByRole("columnheader", { name: "Key" }).waitFor()
  await assertPage(it)
  // Its count links to the tasks
  await page.getByRole("table").getByRole("link", { name: "2 tasks" }).first().click()
  await opened(it, "Tasks")
  await page.getByRole("cell", { name: "Completed" }).first().waitFor()
}

const wallet = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Wallet")
  await page.getByRole("cell", { name: "Top-up" }).waitFor()
  await assertPage(it)
  await page.getByRole("button", { name: "Set alert" }).click()
  await page.getByRole("dialog").getByLabel("Amount").fill("250")
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
  await page.getByText("250.00", { exact: true }).waitFor()
  // An alert that was set counts even without a webhook
  await page.getByRole("button", { name: "Set alert" }).click()
  await page.getByRole("dialog").getByLabel("Amount").fill("1000000")
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click()
  await page.getByText("The balance is below this amount").waitFor()
  await goTo(it, "Home")
  await page.getByRole("link", { name: "Your balance is below the alert" }).click()
  await opened(it, "Wallet")
  await page.getByText("Filters").click()
  await page.getByLabel("Kind").selectOption("capture")
  await page.getByRole("cell", { name: "Top-up" }).waitFor({ state: "detached" })
  await page.getByRole("cell", { name: "999,985.00" }).first().waitFor()
  assert.strictEqual((await fileOf(it)).trim().split("\n").length, 3)
}

const models = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Models", "Models and prices")
  await assertPage(it)
  await page.getByLabel("Name contains").fill(model)
  await page.waitForURL(/[?&]q=/u)
  await page.getByRole("cell", { name: "7.50" }).waitFor()
  await page.getByRole("link", { name: `alibaba/${model}`, exact: true }).click()
  await opened(it, `alibaba/${model}`)
  await page.getByRole("cell", { name: "prompt" }).first().waitFor()
  await assertPage(it)
  const tried = await page.getByRole("link", { name: "Try it" }).getAttribute("href")
  assert.include(tried ?? "", `/playground?model=${encodeURIComponent(`alibaba/${model}`)}`)
  await goTo(it, "Models", "Models and prices")
  await page.getByRole("button", { name: "Text and speech" }).click()
  await page.getByRole("table").getByRole("link").first().click()
  await page.getByText("Maximum output tokens").first().waitFor()
  await assertPage(it)
}

const chat = async (url: string, key: string, content: string) => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "gpt-5-mini",
      messages: [{ role: "user", content }],
      max_completion_tokens: 50
    })
  })
  assert.strictEqual(response.status, 200, await response.text())
}

/** The user keeps call contents: the next call is shown with its code, and turning it off deletes the contents. */
const contents = async (it: ConsolePage, call: () => Promise<void>) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await page.getByRole("button", { name: "Keep requests and responses" }).click()
  assert.deepStrictEqual(await it.axeFindings(), [])
  await dialog.getByRole("button", { name: "Keep requests and responses" }).click()
  await page.getByText("The request and response of this call were not kept").waitFor()
  await call()
  await goTo(it, "Calls")
  await page.getByRole("table").getByRole("link", { name: "openai/gpt-5-mini" }).nth(1).waitFor()
  await page.getByRole("table").getByRole("link", { name: "openai/gpt-5-mini" }).first().click()
  await opened(it, "openai/gpt-5-mini")
  const shown = (name: string) => page.getByRole("region", { name, exact: true })
  await shown("Request").getByText(hostile("Hello")).waitFor()
  await shown("Response").getByText("chat.completion").waitFor()
  await page.getByRole("button", { name: "Python" }).click()
  await shown("Code").getByText("requests.post(").waitFor()
  await assertPage(it)
  await goTo(it, "Calls")
  await page.getByRole("button", { name: "Stop keeping" }).click()
  await dialog.getByRole("button", { name: "Stop keeping" }).click()
  await page.getByRole("button", { name: "Keep requests and responses" }).waitFor()
  await page.getByRole("table").getByRole("link", { name: "openai/gpt-5-mini" }).first().click()
  await page.getByText("Requests and responses are not kept").waitFor()
}

const calls = async (it: ConsolePage, url: string, key: string) => {
  const { page } = it
  await goTo(it, "Calls")
  await page.getByText("No calls yet").waitFor()
  await assertPage(it)
  await chat(url, key, "Hello")
  await page.getByRole("button", { name: "Refresh" }).click()
  const call = page.getByRole("table").getByRole("link", { name: "openai/gpt-5-mini" })
  await call.waitFor()
  await page.getByRole("cell", { name: "Charged" }).waitFor()
  // Less than the API's two decimals can show
  await page.getByRole("cell", { name: "< 0.01", exact: true }).waitFor()
  await assertPage(it)
  await call.click()
  await opened(it, "openai/gpt-5-mini")
  await page.getByText("Output tokens").waitFor()
  await page.getByText("Requests and responses are not kept").waitFor()
  await assertPage(it)
  await contents(it, () => chat(url, key, hostile("Hello")))
  await page.getByRole("link", { name: "Ledger entries" }).click()
  await opened(it, "Wallet")
  await page.getByRole("cell", { name: "Charge" }).waitFor()
}

liveLayer(consoleGateway(), "120 seconds")(
  "the console's pages for keys, usage, wallet, models and calls",
  (it) => {
    it.effect(
      "show a key from creation to revocation, and its spending down to single rows",
      () =>
        Effect.gen(function* () {
          const { key, url } = yield* Running
          const screen = yield* userPage()
          yield* Effect.promise(async () => {
            await keys(screen, url)
            await usage(screen)
            await wallet(screen)
            await models(screen)
            await calls(screen, url, key)
          })
          assert.deepStrictEqual(screen.faults, [])
        }),
      180_000
    )

    it.effect(
      "let the operator top up, and fit in dark mode at 360 px",
      () =>
        Effect.gen(function* () {
          const { userId } = yield* Running
          const screen = yield* consolePage({ width: 360, height: 640, colorScheme: "dark" })
          const { open, page } = screen
          yield* signInOnPage(screen, null)
          yield* Effect.promise(async () => {
            await open(`/users/${userId}`)
            await opened(screen, "user@localhost")
            await page.getByRole("button", { name: "Top up" }).click()
            const dialog = page.getByRole("dialog")
            await dialog.getByLabel("Amount").fill("1000.5")
            await dialog.getByLabel("Note").fill("=2+2 <i>paid</i>")
            assert.deepStrictEqual(await screen.axeFindings(), [])
            await dialog.getByRole("button", { name: "Top up" }).click()
            await dialog.waitFor({ state: "detached" })
            // The charges of all users, most expensive first
            await open("/usage?sandbox=true")
            await opened(screen, "Usage")
            await page.getByRole("cell", { name: "user@localhost" }).waitFor()
            await page.getByRole("cell", { name: "15.00" }).waitFor()
            await assertPage(screen)
            await page.getByRole("button", { name: "Real", exact: true }).click()
            await page.getByText("No usage in this period").waitFor()
            // A viewing operator cannot change anything
            await open(`/wallet?user_id=${userId}`)
            await opened(screen, "Wallet")
            await page.getByText("=2+2 <i>paid</i>").waitFor()
            assert.strictEqual(await page.getByRole("button", { name: "Top up" }).count(), 0)
            await page.getByRole("cell", { name: "+1,000.50" }).waitFor()
            await assertPage(screen)
            await open(`/keys?user_id=${userId}`)
            await opened(screen, "Keys")
            await page.getByRole("table").waitFor()
            assert.strictEqual(await page.getByRole("button", { name: "Create key" }).count(), 0)
            await assertPage(screen)
            for (const [path, title] of [
              ["/usage", "Usage"],
              ["/calls", "Calls"],
              ["/models", "Models and prices"],
              [`/models/alibaba/${model}`, `alibaba/${model}`]
            ] as const) {
              await open(`${path}?user_id=${userId}`)
              await opened(screen, title)
              await assertPage(screen)
            }
          })
          assert.deepStrictEqual(screen.faults, [])
        }),
      180_000
    )
  }
)
