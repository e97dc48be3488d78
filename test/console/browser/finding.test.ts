import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { consoleGateway, operatorPage, userPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { goTo, loadedWidth, assertPage, opened } from "../../support/consoleSteps.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { Running } from "../../support/running.ts"
import { until } from "../../support/until.ts"

/** Tasks, results and users are found by what people know about them. */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const trace = "4bf92f3577b34da6a3ce929d0e0e4736"

const resultsAreShown = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Tasks")
  const rows = page.getByRole("row")
  const harbor = rows.filter({ hasText: "Dawn over the harbor" })
  await harbor.getByText("Completed").waitFor()
  const thumbnail = harbor.locator("img.thumbnail")
  await thumbnail.waitFor()
  await loadedWidth(thumbnail)
  assert.strictEqual(await rows.filter({ hasText: "[[sim:fail]]" }).locator("img").count(), 0)
  await assertPage(it)
  // Even on a small laptop no column is cut off
  await page.setViewportSize({ width: 1280, height: 800 })
  const hidden = await page
    .getByRole("table")
    .evaluate(({ parentElement: it }) => it.scrollWidth - it.clientWidth)
  assert.strictEqual(hidden, 0)
  await page.setViewportSize({ width: 1440, height: 900 })
}

const searchFinds = async (it: ConsolePage, id: string) => {
  const { page } = it
  const search = page.getByRole("searchbox", { name: /^Search prompts/u })
  const titles = page.locator("td:first-child a")
  for (const [text, count] of [
    ["DAWN harbor", 1],
    ["dawn", 2],
    ["order-17", 1],
    [id, 1]
  ] as const) {
    await search.fill(text)
    await page.waitForURL((to) => to.searchParams.get("q") === text)
    await until(async () => (await titles.count()) === count)
  }
  await search.fill("nothing of it")
  await page.getByText("No tasks match these filters").waitFor()
  await assertPage(it)
  // The palette links to the same search
  await page.keyboard.press("Control+k")
  await page.getByRole("combobox", { name: "Search or go to…" }).fill("over the harbor")
  await page.getByRole("option", { name: "Search tasks for “over the harbor”" }).click()
  await page.waitForURL(/q=over\+the\+harbor/u)
  await titles.getByText("Dawn over the harbor").waitFor()
}

const galleryShows = async (it: ConsolePage, create: () => Promise<unknown>) => {
  const { page } = it
  await goTo(it, "Gallery")
  const pictures = page.locator(".gallery li")
  await pictures.nth(1).waitFor()
  assert.strictEqual(await pictures.count(), 2)
  await loadedWidth(pictures.first().locator("img"))
  await assertPage(it)
  await page.getByRole("button", { name: "Videos", exact: true }).click()
  await page.getByText("No results match these filters").waitFor()
  await page.getByRole("button", { name: "Images", exact: true }).click()
  await page.getByRole("link", { name: "Dawn over the harbor" }).click()
  await opened(it, "Dawn over the harbor")
  await page.goBack()
  await pictures.nth(1).waitFor()
  // A new result waits behind a button
  await create()
  await page.getByRole("button", { name: "Show 1 new entry" }).click()
  await pictures.nth(2).waitFor()
  // One that only polling finds, because the stream of events is closed, is shown at once
  await page.route(/\/manage\/v1\/events/u, (route) => route.fulfill({ status: 204 }))
  await page.reload()
  await pictures.nth(2).waitFor()
  await create()
  await pictures.nth(3).waitFor()
  await page.unroute(/\/manage\/v1\/events/u)
}

const usersAreFound = async (it: ConsolePage) => {
  const { page } = it
  await goTo(it, "Users")
  const rows = page.getByRole("row")
  await rows.filter({ hasText: "user@localhost" }).getByText("970.00").waitFor()
  await rows.filter({ hasText: "user@localhost" }).getByText("30.00").waitFor()
  await page.getByRole("searchbox", { name: "Search users…" }).fill("ADA@")
  await page.waitForURL(/q=ADA/u)
  await rows.filter({ hasText: "user@localhost" }).waitFor({ state: "detached" })
  await rows.filter({ hasText: "ada@example.com" }).waitFor()
  await assertPage(it)
  await page.getByRole("button", { name: "Disabled", exact: true }).click()
  await page.getByText("No users match these filters").waitFor()
  await page.getByRole("button", { name: "Clear" }).click()
  await page.getByRole("button", { name: "Lowest balance" }).click()
  await page.getByRole("link", { name: "ada@example.com", exact: true }).waitFor()
  assert.strictEqual(
    await page.locator("td:first-child a").first().textContent(),
    "ada@example.com"
  )
}

const allIsListed = async (it: ConsolePage, call: (body: unknown) => Promise<unknown>) => {
  const { page } = it
  await goTo(it, "Tasks")
  await page.getByRole("link", { name: "user@localhost" }).first().waitFor()
  // The content is on the user's own pages
  assert.notInclude(await page.getByRole("main").innerText(), "harbor")
  await page.getByRole("button", { name: "Failed", exact: true }).click()
  await page.getByRole("cell", { name: /^Failed/u }).waitFor()
  assert.strictEqual(await page.locator("tbody tr").count(), 1)
  await assertPage(it)
  await page.getByRole("link", { name: "alibaba/text-to-image-max" }).click()
  await opened(it, "[[sim:fail]]")
  await page.getByText("You are viewing the pages of user@localhost, read-only.").waitFor()
  await page.getByRole("button", { name: "Back to your account" }).click()
  await opened(it, "user@localhost")
  await call({ model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] })
  await goTo(it, "Calls")
  await page.getByRole("link", { name: "openai/gpt-5-mini" }).click()
  await opened(it, "openai/gpt-5-mini")
  await page.getByRole("button", { name: "Back to your account" }).click()
}

/** Ctrl+K finds a user by part of the address, and lists the several matches of a trace. */
const paletteFinds = async (it: ConsolePage) => {
  const { page } = it
  const search = page.getByRole("combobox", { name: "Search or go to…" })
  await page.keyboard.press("Control+k")
  // A page and a search on the same page are two options, one of which is current
  await search.fill("user")
  await page.getByRole("option", { name: "Search users for “user”" }).waitFor()
  const ids = await page.getByRole("option").evaluateAll((all) => all.map((one) => one.id))
  assert.strictEqual(new Set(ids).size, ids.length)
  const current = (await search.getAttribute("aria-activedescendant")) ?? ""
  assert.strictEqual(await page.locator(`[id="${current}"][aria-selected="true"]`).count(), 1)
  await search.fill("ada@")
  await page.getByRole("option", { name: "ada@example.com", exact: true }).waitFor()
  assert.deepStrictEqual(await it.axeFindings(), [])
  await page.keyboard.press("Enter")
  await opened(it, "ada@example.com")
  await page.keyboard.press("Control+k")
  await search.fill(trace)
  await page.keyboard.press("Enter")
  await opened(it, "Go to")
  await page
    .getByRole("link", { name: /^Task /u })
    .first()
    .waitFor()
  assert.strictEqual(await page.locator("tbody tr").count(), 2)
  await assertPage(it)
  await page.keyboard.press("Control+k")
  await search.fill("00000000-nothing")
  await page.keyboard.press("Enter")
  await page.getByText("No user, task, call or delivery matches 00000000-nothing").waitFor()
}

liveLayer(consoleGateway(), "120 seconds")("the search of the console", (it) => {
  it.effect(
    "finds prompts, results and ids, and for the operator also users and what belongs to them",
    () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const post = async (to: string, body: unknown, as = key, headers = {}) => {
          const response = await fetch(`${url}${to}`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${as}`,
              "content-type": "application/json",
              ...headers
            },
            body: JSON.stringify(body)
          })
          const text = await response.text()
          assert.isTrue(response.ok, text)
          return JSON.parse(text)
        }
        const traced = { traceparent: `00-${trace}-00f067aa0ba902b7-01` }
        const id: string = yield* Effect.promise(async () => {
          await post(
            path,
            {
              prompt: `A lighthouse at dawn, ${"seen from a small boat far out at sea ".repeat(2)}`
            },
            key,
            traced
          )
          const order = { prompt: "Dawn over the harbor", metadata: { order: "order-17" } }
          const created = await post(path, order, key, traced)
          await post(path, { prompt: "[[sim:fail]]" })
          await post("/manage/v1/users", { email: "ada@example.com", name: "Ada" }, adminToken)
          return created.task_info.id
        })
        const screen = yield* userPage({ width: 1440 })
        yield* Effect.promise(async () => {
          await resultsAreShown(screen)
          await searchFinds(screen, id)
          await galleryShows(screen, () => post(path, { prompt: "A third one" }))
        })
        const phone = yield* userPage({ width: 390, colorScheme: "dark" })
        yield* Effect.promise(async () => {
          for (const [to, title] of [
            ["/gallery", "Gallery"],
            ["/tasks?q=dawn", "Tasks"]
          ] as const) {
            await phone.open(to)
            await opened(phone, title)
            await phone.page.getByRole("link", { name: "Dawn over the harbor" }).waitFor()
            await assertPage(phone)
          }
        })
        const operator = yield* operatorPage({ width: 1440 })
        yield* Effect.promise(async () => {
          await usersAreFound(operator)
          await allIsListed(operator, (body) => post("/v1/chat/completions", body))
          await paletteFinds(operator)
          await operator.page.setViewportSize({ width: 390, height: 800 })
          for (const [to, title] of [
            ["/users", "Users"],
            ["/tasks", "Tasks"],
            ["/calls", "Calls"]
          ] as const) {
            await operator.open(to)
            await opened(operator, title)
            await operator.page.getByRole("table").waitFor()
            await assertPage(operator)
          }
        })
        for (const one of [screen, phone, operator]) assert.deepStrictEqual(one.faults, [])
      }),
    240_000
  )
})
