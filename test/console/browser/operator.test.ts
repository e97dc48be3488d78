import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"
import { consoleGateway, consolePage, signInOnPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { act, goTo, hostile, assertPage, opened, tabTo } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import { Running } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const vendor = await mockOpenAi()
afterAll(vendor.close)

const file = join(temporaryFolder("catalog"), "catalog.json")
const write = (content: unknown) => writeFileSync(file, JSON.stringify(content))
write({})

const env = {
  TOP_UP_URL: "https://shop.example.com/credits",
  CATALOG_FILE: file,
  OPENAI_API_KEY: "sk-secret-aaaa;name=a;concurrent=3,sk-secret-bbbb;name=b,sk-secret-cccc;name=c",
  OPENAI_BASE_URL: `${vendor.origin}/v1`
}

const sum = (amount: string) => ({
  change: { "text-to-image-max": { price: { per: "image", amount } } }
})

/** A user, created using only the keyboard, with credits; and the owner's link. */
const makeOwner = async (it: ConsolePage) => {
  const { page } = it
  // The page after the sign-in focuses its heading when it has loaded
  await page.locator("#main h1:focus").waitFor()
  await tabTo(it, /^A .*Skip to content/u)
  await page.keyboard.press("Enter")
  await tabTo(it, /^A .*Users/u)
  await page.keyboard.press("Enter")
  await opened(it, "Users")
  await assertPage(it)
  await tabTo(it, /Create user/u)
  await page.keyboard.press("Enter")
  const dialog = page.getByRole("dialog")
  await dialog.waitFor()
  await page.keyboard.press("Escape")
  // Closed and removed
  await page.locator("dialog").waitFor({ state: "detached" })
  assert.strictEqual(await page.evaluate("document.activeElement.innerText"), "Create user")
  await page.keyboard.press("Enter")
  await dialog.waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  await page.keyboard.type("owner@example.com")
  await tabTo(it, /Name$/u)
  await page.keyboard.type(hostile("Owner"))
  await page.keyboard.press("Enter")
  await opened(it, "owner@example.com")
  await page.getByText(hostile("Owner")).waitFor()
  await tabTo(it, /Actions for owner/u)
  await page.keyboard.press("Enter")
  await tabTo(it, /Sign-in link/u)
  await page.keyboard.press("Enter")
  await page.getByRole("dialog").getByText("It works once").waitFor()
  await tabTo(it, /Make a link/u)
  await page.keyboard.press("Enter")
  const link = await page.getByRole("dialog").locator("code").textContent()
  await tabTo(it, /Done/u)
  await page.keyboard.press("Enter")
  await tabTo(it, /^BUTTON .*Top up/u)
  await page.keyboard.press("Enter")
  await page.getByRole("dialog").waitFor()
  await page.keyboard.type("20.5")
  await page.keyboard.press("Enter")
  await page.getByText("20.50", { exact: true }).first().waitFor()
  await assertPage(it)
  return link ?? ""
}

/** The operator views without changing anything, and the user can see that in the audit log. */
const viewAs = async (it: ConsolePage, userId: string) => {
  const { page } = it
  await page.getByRole("link", { name: "View as" }).click()
  await opened(it, "Home")
  await page.getByText("You are viewing the pages of owner@example.com, read-only.").waitFor()
  await assertPage(it)
  for (const [link, forbidden] of [
    ["Keys", "Create key"],
    ["Wallet", "Top up"],
    ["Wallet", "Set alert"],
    ["Sessions", "Revoke"]
  ] as const) {
    await goTo(it, link)
    assert.include(page.url(), `user_id=${userId}`)
    assert.strictEqual(await page.getByRole("button", { name: forbidden }).count(), 0, link)
  }
  assert.strictEqual(await page.getByRole("link", { name: "Users" }).count(), 0)
  await page.getByRole("button", { name: "Back to your account" }).click()
  await opened(it, "owner@example.com")
  await page.getByRole("cell", { name: "List API keys" }).first().waitFor()
}

const accounts = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Accounts")
  const row = page.getByRole("row").filter({ hasText: "openai:a" })
  await row.getByText("Healthy").waitFor()
  assert.notInclude(await page.content(), "sk-secret")
  await page.getByRole("button", { name: "Drain openai:a" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click()
  await row.getByText("Draining", { exact: true }).waitFor()
  await page.getByRole("button", { name: "Check openai:a" }).click()
  await page.getByText("openai:a responded correctly").waitFor()
  vendor.script = (_, response) =>
    json(response, 401, { error: { message: hostile("no"), type: "x", code: hostile("code") } })
  await page.getByRole("button", { name: "Check openai:b" }).click()
  await page.getByText("openai:b failed its check: HTTP 401").waitFor()
  await assertPage(it)
  // Not only a key that was refused
  const other = page.getByRole("row").filter({ hasText: "openai:c" })
  await other.getByText("Healthy").waitFor()
  vendor.script = (_, response) => json(response, 500, { error: { message: hostile("no") } })
  await page.getByRole("button", { name: "Check openai:c" }).click()
  await page.getByText("openai:c failed its check: HTTP 500").waitFor()
  await other.getByText("Unavailable", { exact: true }).waitFor()
  await other.getByText("Check failed").waitFor()
  vendor.script = openAiScript
  await assertPage(it)
  // Home names the account that needs attention
  await goTo(it, "Home")
  await page.getByRole("cell", { name: "openai:a" }).waitFor()
  await page.getByRole("cell", { name: "openai:c" }).waitFor()
  await page.getByText("Every wallet matches its ledger").waitFor()
  await assertPage(it)
  await page.getByRole("link", { name: "All accounts" }).click()
  await page.getByRole("button", { name: "Resume openai:a" }).click()
  await page.getByRole("button", { name: "Drain openai:a" }).waitFor()
}

/** A first password right after the link, and the page where credits are bought. */
const ownAccount = async (it: ConsolePage) => {
  const { page } = it
  await it.open("/sessions")
  await opened(it, "Sessions")
  await page.getByRole("button", { name: "Change password" }).click()
  const dialog = page.getByRole("dialog")
  await dialog.getByLabel("New password").fill("short")
  await dialog.getByRole("button", { name: "Change password" }).click()
  await dialog.getByText("Enter 8 characters or more").waitFor()
  await assertPage(it)
  await dialog.getByLabel("New password").fill("correct horse")
  await dialog.getByRole("button", { name: "Change password" }).click()
  await page.getByText("Your password was changed").waitFor()
  await page.getByText("This session").waitFor()
  await it.open("/wallet")
  await opened(it, "Wallet")
  const buy = page.getByRole("link", { name: "Buy credits" })
  assert.strictEqual(await buy.getAttribute("href"), "https://shop.example.com/credits")
  await assertPage(it)
  await it.open("/")
  await opened(it, "Home")
}

const bills = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Bills")
  await page.getByRole("button", { name: "Compare" }).click()
  await page.getByText("Choose the file of the bill").waitFor()
  await assertPage(it)
  const upload = async (csv: string) => {
    await page
      .getByLabel("Bill", { exact: true })
      .setInputFiles({ name: "bill.csv", mimeType: "text/csv", buffer: Buffer.from(csv) })
    await page.getByRole("button", { name: "Compare" }).click()
  }
  await page.getByLabel("Vendor").selectOption("replicate")
  await upload("not a bill")
  await page.getByRole("alert").waitFor()
  await upload(`id,model,date,amount\n${hostile("job")},flux,2026-11-20,0.05\n`)
  await page.getByRole("heading", { name: "Replicate, Nov 20, 2026" }).waitFor()
  // Nobody was charged for the work on the bill, so all of it is a loss
  await page.locator(".tile.bad").filter({ hasText: "Margin" }).getByText("−5.00").waitFor()
  const margin = page.getByRole("table", { name: "Margin by model" })
  await margin.getByRole("row", { name: "flux 5.00 0.00 −5.00 —" }).waitFor()
  assert.strictEqual(await page.getByRole("slider").count(), 0)
  // Several days are shown as a chart
  await upload(`id,model,date,amount\n${hostile("job")},flux,2026-11-20,0.05\n,f,2026-11-22,0.02\n`)
  const days = page.getByRole("slider", { name: /^Charged, billed and margin/u })
  await days.press("Home")
  assert.strictEqual(
    await days.getAttribute("aria-valuetext"),
    "Nov 20: −5.00 margin; Charged 0.00; Billed 5.00"
  )
  await days.press("ArrowRight")
  assert.match((await days.getAttribute("aria-valuetext")) ?? "", /^Nov 21: 0\.00 margin/u)
  const table = page.getByRole("table", { name: "Billed, not charged" })
  await table.getByRole("cell", { name: hostile("job") }).waitFor()
  await table.getByRole("cell", { name: "5.00" }).waitFor()
  await assertPage(it)
  await severalBills(it)
}

/** Bills are added up until one is removed; a file that is not a bill is named. */
const severalBills = async (it: ConsolePage) => {
  const { page } = it
  const fileOf = (name: string, csv: string) => ({
    name,
    mimeType: "text/csv",
    buffer: Buffer.from(csv)
  })
  await page
    .getByLabel("Bill", { exact: true })
    .setInputFiles([
      fileOf("october.csv", "id,model,date,amount\n,flux,2026-10-30,0.10\n"),
      fileOf(`${hostile("no")}.csv`, "not a bill"),
      fileOf("never.csv", "id,model,date,amount\n,flux,2026-10-30,9.00\n")
    ])
  await page.getByRole("button", { name: "Compare" }).click()
  await page.getByText(`${hostile("no")}.csv was not compared:`).waitFor()
  await page.getByRole("heading", { name: "2 bills together" }).waitFor()
  const margin = page.locator(".tile.bad").filter({ hasText: "Margin" }).first()
  // 7 credits of the previous bill, and 10 of October
  await margin.getByText("−17.00").waitFor()
  const together = page.getByRole("table", { name: "2 bills together" })
  await together.getByRole("row", { name: /october\.csv 10\.00 0\.00 −10\.00/u }).waitFor()
  const course = page.getByRole("slider", { name: /^Charged, billed and margin/u })
  assert.match((await course.first().getAttribute("aria-valuetext")) ?? "", /^Nov 22: −2\.00/u)
  await course.first().press("Home")
  assert.match((await course.first().getAttribute("aria-valuetext")) ?? "", /^Oct 30: −10\.00/u)
  await assertPage(it)
  await together.getByRole("button", { name: "Replicate, Nov 20 – 22, 2026" }).click()
  await page.getByRole("heading", { name: "Replicate, Nov 20 – 22, 2026" }).waitFor()
  await page.getByRole("button", { name: "Remove bill.csv" }).click()
  await together.waitFor({ state: "detached" })
  await page.getByRole("heading", { name: "Replicate, Oct 30, 2026" }).waitFor()
}

const catalog = async (it: ConsolePage) => {
  const { page } = it
  const region = page.getByRole("region", { name: "What the file changes" })
  await goTo(it, "Catalog")
  await page.getByRole("button", { name: "Compare with the file" }).click()
  await page.getByText("The file matches the adopted catalog").waitFor()
  write(sum("9.00"))
  await page.getByRole("button", { name: "Compare with the file" }).click()
  await page.getByText("1 row differs from the file").waitFor()
  await region.getByText("#/price/amount").waitFor()
  await assertPage(it)
  write(sum(hostile("9")))
  await page.getByRole("button", { name: "Compare with the file" }).click()
  await page.getByRole("alert").getByText("change/text-to-image-max").first().waitFor()
  write(sum("9.00"))
  await page.getByRole("button", { name: "Adopt the file" }).click()
  await page.getByRole("dialog").getByRole("button", { name: "Adopt the file" }).click()
  await page.getByText("The file was adopted.").waitFor()
  await page.getByText("Filters").click()
  await page.getByLabel("Row contains").fill("text-to-image-max")
  await page.keyboard.press("Enter")
  const prices = page.getByRole("region", { name: "All price rows" })
  await prices.getByRole("cell", { name: "9.00" }).waitFor()
}

liveLayer(consoleGateway(env), "120 seconds")("the operator's pages of the console", (it) => {
  it.effect(
    "show a user from creation to deletion, accounts, catalog and audit log",
    () =>
      Effect.gen(function* () {
        const screen = yield* consolePage()
        const owner = yield* consolePage({ width: 360, height: 640, colorScheme: "dark" })
        const { page } = screen
        yield* signInOnPage(screen, null)
        yield* Effect.promise(async () => {
          const link = await makeOwner(screen)
          const userId = page.url().split("/").at(-1) ?? ""
          await owner.page.goto(link)
          await owner.page.getByRole("button", { name: "Sign in with this link" }).click()
          await opened(owner, "Home")
          await ownAccount(owner)
          await viewAs(screen, userId)
          // A changed limit; then the user is disabled and signed out
          await act(screen, "owner@example.com", "Change")
          const dialog = page.getByRole("dialog")
          await dialog.getByLabel("Concurrent tasks").fill("0")
          await dialog.getByText("Enter a whole number, 1 or more").waitFor()
          await dialog.getByLabel("Concurrent tasks").fill("7")
          await dialog.getByRole("button", { name: "Save" }).click()
          await page.getByText("7", { exact: true }).waitFor()
          await act(screen, "owner@example.com", "Disable")
          await dialog.getByRole("button", { name: "Disable" }).click()
          await page.getByText("Disabled").waitFor()
          // The stream ends with the session, and the page signs out
          await opened(owner, "Sign in")
          await act(screen, "owner@example.com", "Enable")
          await dialog.getByRole("button", { name: "Enable" }).click()
          await page.getByText("Active").waitFor()
          await accounts(screen)
          await catalog(screen)
          await bills(screen)
          await goTo(screen, "Audit", "Audit log")
          await page.getByText("Filters").click()
          await page.getByLabel("User id").fill(userId)
          await page.keyboard.press("Enter")
          await page.getByLabel("Action", { exact: true }).selectOption("updateUser")
          await page.getByRole("cell", { name: "concurrent_tasks: 7" }).waitFor()
          assert.include(page.url(), "of_user=")
          await assertPage(screen)
          await screen.open(`/users/${userId}`)
          await page.getByRole("heading", { level: 1, name: "owner@example.com" }).waitFor()
          await act(screen, "owner@example.com", "Delete")
          await dialog.getByRole("button", { name: "Delete" }).click()
          await dialog.getByText("This is not the address of the user").waitFor()
          await dialog.getByLabel("Type owner@example.com").fill("owner@example.com")
          await dialog.getByRole("button", { name: "Delete" }).click()
          await opened(screen, "Users")
          await page.getByRole("link", { name: "user@localhost", exact: true }).waitFor()
          assert.strictEqual(await page.getByText("owner@example.com").count(), 0)
        })
        // The catalog file that was refused
        const own = screen.faults.filter((it) => !it.includes("status of 400"))
        assert.deepStrictEqual([...own, ...owner.faults], [])
      }),
    180_000
  )

  it.effect(
    "fit in dark mode at 360 px, and are not found while the operator views a user",
    () =>
      Effect.gen(function* () {
        const { userId } = yield* Running
        const screen = yield* consolePage({ width: 360, height: 640, colorScheme: "dark" })
        const { open, page } = screen
        yield* signInOnPage(screen, null)
        yield* Effect.promise(async () => {
          await opened(screen, "Home")
          await assertPage(screen)
          for (const [path, title] of [
            ["/users", "Users"],
            [`/users/${userId}`, "user@localhost"],
            ["/accounts", "Accounts"],
            ["/catalog", "Catalog"],
            ["/usage", "Usage"],
            ["/bills", "Bills"],
            ["/audit-log", "Audit log"],
            ["/sessions", "Sessions"]
          ] as const) {
            await open(path)
            await opened(screen, title)
            await assertPage(screen)
          }
          await page.getByText("This session").waitFor()
          await open(`/users?user_id=${userId}`)
          await opened(screen, "Page not found")
        })
        assert.deepStrictEqual(screen.faults, [])
      }),
    180_000
  )
})
