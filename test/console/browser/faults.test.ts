import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { Locator } from "playwright-core"
import { consoleGateway, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { act, goTo, opened } from "../../support/consoleSteps.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { Running } from "../../support/running.ts"
import { until } from "../../support/until.ts"

/** Faults that users found in the console, none of which may return. */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const playground = "/playground?model=alibaba%2Ftext-to-image-max"

/** Asserts that all of it is on the screen without scrolling. */
const assertInSight = async ({ page }: ConsolePage, what: Locator) => {
  const box = await what.boundingBox()
  const height = page.viewportSize()?.height ?? 0
  assert.isNotNull(box)
  assert.isAtLeast(box?.y ?? -1, 0)
  assert.isAtMost((box?.y ?? height) + Math.min(box?.height ?? 0, height / 2), height)
}

const runIsInSight = async (it: ConsolePage) => {
  const { page } = it
  await it.open(playground)
  const run = page.getByRole("button", { name: "Run", exact: true })
  await run.waitFor()
  await assertInSight(it, run)
  await page.getByLabel("Prompt (required)").fill("A lighthouse at night")
  // With the keyboard, from within the field
  await page.keyboard.press("Control+Enter")
  const image = page.getByRole("img", { name: "Result image 1" })
  await image.waitFor()
  await assertInSight(it, image)
  await assertInSight(it, page.getByRole("button", { name: "Run again" }))
  assert.match(page.url(), /&task=[0-9a-f-]{36}$/u)
}

/** The faults of fields are shown above the bar with Run, wherever the page was scrolled. */
const errorsAreInSight = async (it: ConsolePage) => {
  const { page } = it
  await it.open(playground)
  await page.getByLabel("Prompt (required)").fill("A lighthouse")
  await page.getByText("Advanced").click()
  await page.getByLabel("Seed", { exact: true }).fill("-5")
  const error = page.locator(".field-error")
  await error.waitFor()
  await page.evaluate("scrollTo(0, 0)")
  await page.getByRole("button", { name: "Run", exact: true }).click()
  const bar = page.locator(".run-bar")
  await bar.getByText("Correct the marked fields to see the price.").waitFor()
  await until(async () => {
    const [said, below] = [await error.boundingBox(), await bar.boundingBox()]
    return said !== null && below !== null && said.y > 0 && said.y + said.height <= below.y
  })
  // The input stays for the next visit
  await page.getByLabel("Seed", { exact: true }).fill("")
  await error.waitFor({ state: "detached" })
}

/** A reload keeps the prompt and the run; a link restores them in another tab. */
const reloadKeeps = async (it: ConsolePage) => {
  const { context, page } = it
  await page.reload()
  await page.getByRole("img", { name: "Result image 1" }).waitFor()
  assert.strictEqual(
    await page.getByLabel("Prompt (required)").inputValue(),
    "A lighthouse at night"
  )
  const other = await context.newPage()
  await other.goto(page.url())
  await other.getByRole("img", { name: "Result image 1" }).waitFor()
  await other.getByText("A lighthouse at night").first().waitFor()
  await other.close()
  await it.open("/playground?kind=token")
  await page.getByLabel("Message (required)").fill("Hello")
  await page.getByRole("button", { name: "Send" }).click()
  await page.getByText(/credits · \d+ tokens in/u).waitFor()
  await page.reload()
  await page.getByText(/credits · \d+ tokens in/u).waitFor()
}

/** A sign-out removes everything that the next user of this tab could find. */
const nothingIsLeft = async (it: ConsolePage) => {
  const { page } = it
  await page.getByRole("button", { name: /Account menu/u }).click()
  await page.getByRole("button", { name: "Sign out" }).click()
  await opened(it, "Sign in")
  assert.strictEqual(await page.evaluate("sessionStorage.length"), 0)
}

const backKeepsRows = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Tasks")
  await page.getByRole("button", { name: "Show more" }).click()
  const rows = page.getByRole("row")
  await rows.nth(60).waitFor()
  const count = await rows.count()
  const link = rows.nth(58).getByRole("link")
  await link.scrollIntoViewIfNeeded()
  const place = await page.evaluate<number>("scrollY")
  assert.isAbove(place, 500)
  await link.click()
  await page.getByRole("heading", { name: "Timeline" }).waitFor()
  assert.strictEqual(await page.evaluate("scrollY"), 0)
  await page.goBack()
  await rows.nth(60).waitFor()
  assert.strictEqual(await rows.count(), count)
  await until(() => page.evaluate<boolean>(`Math.abs(scrollY - ${place}) < 3`))
}

const barStays = async (it: ConsolePage) => {
  await it.page.evaluate("scrollTo(0, 900)")
  await assertInSight(it, it.page.getByRole("banner"))
  await assertInSight(it, it.page.getByRole("navigation").getByRole("link").first())
}

/** Models, vendors and keys are chosen from lists; an amount applies without leaving its field. */
const filtersAreLists = async (it: ConsolePage) => {
  const { page } = it
  await page.getByRole("button", { name: "Filters" }).click()
  for (const name of ["Model", "Vendor", "API key"]) {
    assert.strictEqual(
      await page.getByLabel(name, { exact: true }).evaluate((one) => one.tagName),
      "SELECT"
    )
  }
  await page.getByLabel("Minimum cost").pressSequentially("5000")
  await page.waitForURL(/min_cost=5000/u)
  await page.getByText("No tasks match these filters").waitFor()
  await page.getByRole("button", { name: "Clear" }).click()
}

const amountIsRefusedOnce = async (it: ConsolePage) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Wallet")
  await page.getByRole("button", { name: "Set alert" }).click()
  await dialog.getByLabel("Amount").fill("12,50")
  await dialog.getByRole("button", { name: "Save" }).click()
  await dialog.getByText("Enter an amount with").waitFor()
  assert.strictEqual(await dialog.getByText("Enter an amount with").count(), 1)
  assert.strictEqual(await dialog.getByText("Something went wrong").count(), 0)
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "detached" })
}

/** A ledger row links to its task or call, and expands to its entries. */
const ledgerLeads = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Wallet")
  const charge = page.getByRole("row").filter({ hasText: "Charge" }).filter({ hasText: "−7.50" })
  await charge.first().getByRole("link", { name: "A lighthouse at night" }).waitFor()
  await charge.first().getByRole("button").click()
  await page.getByText(/^Hold 7\.50/u).waitFor()
  await charge.first().getByRole("link").click()
  await page.getByRole("heading", { name: "Timeline" }).waitFor()
  // Its moments show the time since the first one
  await page
    .getByText(/^\+\d+\.\d\d s$/u)
    .first()
    .waitFor()
  await goTo(it, "Wallet")
  const call = page.getByRole("row").filter({ hasText: "Charge", hasNotText: "7.50" })
  await call.first().getByRole("link").click()
  await opened(it, "openai/gpt-5-mini")
}

/** An endpoint without an event is rejected at the field of events. */
const eventIsAskedFor = async (it: ConsolePage) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Webhooks")
  await page.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByLabel("Address (URL)").fill("https://127.0.0.1/hook")
  for (const name of [/task\.succeeded/u, /task\.failed/u]) {
    await dialog.getByRole("checkbox", { name }).uncheck()
  }
  await dialog.getByRole("button", { name: "Add endpoint" }).click()
  await dialog.getByText("Choose at least one event").waitFor()
  assert.strictEqual(await dialog.getByText("Something went wrong").count(), 0)
  await dialog.locator("input[type=checkbox]:focus").waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  await page.keyboard.press("Escape")
  await dialog.waitFor({ state: "detached" })
}

const secretStays = async (it: ConsolePage) => {
  const { page } = it
  const dialog = page.getByRole("dialog")
  await goTo(it, "Keys")
  await page.getByRole("button", { name: "Create key" }).click()
  await dialog.getByLabel("Name").fill("kept")
  await dialog.getByRole("button", { name: "Create key" }).click()
  await dialog.getByText("Copy it now").waitFor()
  await page.keyboard.press("Escape")
  await page.keyboard.press("Escape")
  assert.match((await dialog.locator("code").first().textContent()) ?? "", /^sk-/u)
  await dialog.getByText(/curl .*\/v1\/models/u).waitFor()
  await dialog.getByRole("button", { name: "Done" }).click()
}

const consoleKeyHasNoRotate = async (it: ConsolePage) => {
  const { page } = it
  await page.getByRole("button", { name: "Actions for Console", exact: true }).click()
  await page.getByRole("button", { name: "Revoke Console" }).waitFor()
  assert.strictEqual(await page.getByRole("button", { name: "Rotate Console" }).count(), 0)
  await page.keyboard.press("Escape")
}

const pricesHaveNoSource = async (it: ConsolePage) => {
  await it.open("/models/alibaba/text-to-image-max")
  await it.page.getByText("/ image").waitFor()
  const text = await it.page.getByRole("main").innerText()
  assert.notMatch(text, /source|reseller|unverified|quote/iu)
}

/** Ctrl+K finds pages by name and anything by id. */
const paletteLeads = async (it: ConsolePage, taskId: string) => {
  const { page } = it
  const search = page.getByRole("combobox", { name: "Search or go to…" })
  await page.keyboard.press("Control+k")
  await search.fill("usa")
  assert.deepStrictEqual(await it.axeFindings(), [])
  await page.keyboard.press("Enter")
  await opened(it, "Usage")
  await page.keyboard.press("Control+k")
  await search.fill(taskId)
  await page.keyboard.press("Enter")
  await opened(it, "A lighthouse at night")
  await page.keyboard.press("Control+k")
  await search.fill("0000-nothing")
  await page.keyboard.press("Enter")
  await page.getByText("No task, call or delivery of yours has the id 0000-nothing").waitFor()
}

const auditIsReadable = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Audit", "Audit log")
  await page.getByRole("cell", { name: "Create API key", exact: true }).first().waitFor()
  assert.strictEqual(await page.locator(".action").getByText(/^List/u).count(), 0)
}

/** A dialog keeps its input when the session ends. */
const expiryKeepsDialog = async (it: ConsolePage) => {
  const { context, page } = it
  const dialog = page.getByRole("dialog", { name: "Create key" })
  await goTo(it, "Keys")
  await page.getByRole("button", { name: "Create key" }).click()
  await dialog.getByLabel("Name").fill("typed before")
  await context.clearCookies()
  await dialog.getByRole("button", { name: "Create key" }).click()
  const again = page.getByRole("dialog", { name: "Sign in again" })
  await again.getByText("Use an API key").click()
  return { again, dialog }
}

const days = async (it: ConsolePage) => {
  const { page } = it
  await it.open("/usage")
  const chart = page.getByRole("slider")
  await chart.waitFor()
  // Only days with usage have a bar, and today is visible
  assert.strictEqual(await page.locator(".bar").count(), 1)
  const box = await page.locator(".bar").boundingBox()
  assert.isAtMost((box?.x ?? 1000) + (box?.width ?? 0), 390)
  assert.isAbove(await page.locator(".gridline").count(), 1)
  await page.locator(".slot").last().hover()
  await page.locator(".tip").waitFor()
  await it.assertFits()
}

const dot = `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>`

/** Results are large, so a page loads only those in view, and the others when they come into view. */
const loadsWhatIsSeen = async (it: ConsolePage, kind: "images" | "videos") => {
  const { context, page } = it
  const loaded = new Set<string>()
  await context.route("**/artifacts/art_*", (route) => {
    loaded.add(new URL(route.request().url()).pathname)
    return route.fulfill({ body: dot, contentType: "image/svg+xml" })
  })
  await context.route("**/manage/v1/tasks?*", async (route) => {
    const response = await route.fetch({ url: route.request().url().replace(/\?.*/u, "") })
    const { data } = await response.json()
    const task = { ...data[0], status: "completed", error: null, prompt: "A lighthouse" }
    const many = Array.from({ length: 48 }, (_, n) => {
      const id = n.toString(16).padStart(32, "0")
      const url = `https://elsewhere.test/artifacts/art_${id}?expires=9999999999&signature=x`
      const preview = { kind, url, expires_at: "2099-01-01T00:00:00.000Z", count: 1 }
      return { ...task, id: `${task.id.slice(0, -3)}${String(n).padStart(3, "0")}`, preview }
    })
    return route.fulfill({ json: { data: many, next_cursor: null } })
  })
  const last = page.getByText("A lighthouse").nth(47)
  const first = page.waitForRequest(/artifacts\/art_/u)
  await it.open(kind === "videos" ? "/gallery" : "/tasks")
  await last.waitFor()
  await first
  // The browser has reported what is in view
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
  assert.isAtMost(loaded.size, 30)
  const others = page.waitForRequest(/artifacts\/art_0+2f/u)
  await last.scrollIntoViewIfNeeded()
  await others
}

/** While a page loads, its figures and chart keep their places, and the selection stays. */
const shapesStay = async (it: ConsolePage, to: string, waits: string) => {
  const { context, page } = it
  let answer = () => {}
  const answered = new Promise<void>((resolve) => {
    answer = resolve
  })
  await context.route(waits, async (route) => {
    await answered
    await route.continue()
  })
  await it.open(to)
  const bones = page.locator(".loading .tile").first()
  await bones.waitFor()
  await page.locator(".loading > .chart").waitFor()
  if (to === "/usage") await page.getByRole("group", { name: "Group by" }).waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  const before = await bones.boundingBox()
  answer()
  const figure = page.locator("dl .tile").first()
  await figure.waitFor()
  const after = await figure.boundingBox()
  assert.strictEqual(after?.y, before?.y)
  assert.closeTo(after?.height ?? 0, before?.height ?? 0, 2)
  await context.unroute(waits)
}

/** A page links to its documentation. */
const documentsAreNear = async (it: ConsolePage) => {
  for (const [to, title, section] of [
    ["/wallet", "Wallet", "wallet"],
    ["/webhooks/deliveries", "Deliveries", "webhook-deliveries"]
  ] as const) {
    await it.open(to)
    await opened(it, title)
    const link = it.page.getByRole("main").getByRole("link", { name: "Documentation" })
    assert.match((await link.getAttribute("href")) ?? "", new RegExp(`/docs#tag/${section}$`, "u"))
  }
}

liveLayer(consoleGateway(), "120 seconds")("the console", (it) => {
  const post = (url: string, key: string, to: string, body: unknown) =>
    fetch(`${url}${to}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    }).then((response) => response.text())

  it.effect(
    "keeps Run in view, keeps rows, positions, prompts and dialogs, and shows a fault once",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const screen = yield* userPage({ width: 1440, height: 900 })
        yield* Effect.promise(async () => {
          await errorsAreInSight(screen)
          await runIsInSight(screen)
          const taskId = new URL(screen.page.url()).searchParams.get("task") ?? ""
          await reloadKeeps(screen)
          await post(url, key, "/v1/chat/completions", {
            model: "gpt-5-mini",
            messages: [{ role: "user", content: "Hello" }]
          })
          await ledgerLeads(screen)
          const tasks = Array.from({ length: 62 }, (_, n) => n)
          for (const n of tasks) await post(url, key, path, { prompt: `[[sim:fail]] ${n}` })
          await backKeepsRows(screen)
          await barStays(screen)
          await filtersAreLists(screen)
          await amountIsRefusedOnce(screen)
          await eventIsAskedFor(screen)
          await secretStays(screen)
          await consoleKeyHasNoRotate(screen)
          await pricesHaveNoSource(screen)
          await paletteLeads(screen, taskId)
          await auditIsReadable(screen)
          const { again, dialog } = await expiryKeepsDialog(screen)
          await again.getByLabel("API key or operator token").fill(key)
          await again.getByRole("button", { name: "Sign in with this key" }).click()
          await again.waitFor({ state: "detached" })
          await dialog.getByRole("button", { name: "Create key" }).click()
          await screen.page.getByRole("dialog").getByRole("button", { name: "Done" }).click()
          await screen.page.getByRole("link", { name: "typed before" }).waitFor()
          await act(screen, "typed before", "Revoke typed before")
          await screen.page.keyboard.press("Escape")
          await screen.open(playground)
          await screen.page.getByLabel("Prompt (required)").waitFor()
          await nothingIsLeft(screen)
        })
        assert.deepStrictEqual(screen.faults, [])
      }),
    240_000
  )

  it.effect(
    "loads only the results that are in view",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        yield* Effect.promise(() => post(url, key, path, { prompt: "A lighthouse" }))
        for (const kind of ["images", "videos"] as const) {
          const screen = yield* userPage()
          yield* Effect.promise(() => loadsWhatIsSeen(screen, kind))
          assert.deepStrictEqual(screen.faults, [])
        }
      }),
    180_000
  )

  it.effect(
    "keeps its layout while parts load, and links each page to its documentation",
    () =>
      Effect.gen(function* () {
        const screen = yield* userPage()
        yield* Effect.promise(async () => {
          await shapesStay(screen, "", "**/manage/v1/wallet")
          await shapesStay(screen, "/usage", "**/manage/v1/usage?*")
          await documentsAreNear(screen)
        })
        assert.deepStrictEqual(screen.faults, [])
      }),
    180_000
  )

  it.effect(
    "draws only days with usage, and shows today on the screen of a phone",
    () =>
      Effect.gen(function* () {
        const screen = yield* userPage({ width: 390, height: 844 })
        yield* Effect.promise(() => days(screen))
        assert.deepStrictEqual(screen.faults, [])
      }),
    180_000
  )
})
