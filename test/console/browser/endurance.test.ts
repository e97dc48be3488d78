import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"
import { consoleGateway, consolePage, signInOnPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { goTo, hostile, assertPage, opened, signOut } from "../../support/consoleSteps.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { mockOpenAi } from "../../support/mockOpenAi.ts"
import { json } from "../../support/mockVendors.ts"
import { Running } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** What the console withstands: strangers, attackers, hostile texts, a failing stream, no network. */

const vendor = await mockOpenAi()
vendor.script = (_, response) =>
  json(response, 400, {
    error: { message: hostile("refused"), type: "image_generation_user_error", code: hostile("x") }
  })
afterAll(vendor.close)

// A picture made by a vendor whose every response is hostile
const file = join(temporaryFolder("catalog"), "catalog.json")
const hostileModel = {
  label: "text-to-image-preview",
  model: "hostile",
  vendor: "openai",
  adapter: "openai-image",
  upstreamModel: "gpt-image-2"
}
writeFileSync(file, JSON.stringify({ add: [hostileModel] }))
const env = {
  CATALOG_FILE: file,
  OPENAI_API_KEY: "sk-secret-aaaa;name=a",
  OPENAI_BASE_URL: `${vendor.origin}/v1`
}

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const requestWith =
  (url: string, token: string) => async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} ${response.status} ${text}`)
    return text === "" ? undefined : JSON.parse(text)
  }

const idOf = ({ task_info: { id } }: { task_info: { id: string } }) => id

/** Texts from vendors, clients and names are always shown as text. */
const hostileTexts = async (it: ConsolePage, call: ReturnType<typeof requestWith>) => {
  const { page } = it
  const body = { prompt: hostile("A lighthouse") }
  const refused = idOf(await call("POST", "/vendors/openai/v1/hostile/generation", body))
  await call("POST", "/manage/v1/api-keys", { name: hostile("robot") })
  await it.open(`/tasks/${refused}`)
  await page.locator(".problem").getByText(hostile("refused")).waitFor()
  await page.getByText("onerror=alert(1)>A lighthouse").nth(1).waitFor()
  await assertPage(it)
  await goTo(it, "Keys")
  await page.getByText(hostile("robot"), { exact: true }).waitFor()
  await it.open(`/tasks/${encodeURIComponent(hostile("id"))}`)
  await page.getByRole("alert").waitFor()
  await it.open(`/tasks?model=${encodeURIComponent(hostile("model"))}`)
  await page.getByText("No tasks match these filters").waitFor()
  assert.strictEqual(await page.getByLabel("Model").inputValue(), hostile("model"))
}

/** Rows keep their place, and new ones wait behind a button. */
const places = async (it: ConsolePage, call: ReturnType<typeof requestWith>) => {
  const { page } = it
  for (let n = 0; n < 12; n += 1) await call("POST", path, { prompt: "[[sim:fail]]" })
  await page.setViewportSize({ width: 1280, height: 400 })
  await goTo(it, "Tasks")
  const links = page.getByRole("table").getByRole("link")
  await page.getByRole("cell", { name: "Failed" }).nth(11).waitFor()
  const last = links.nth(11)
  await last.scrollIntoViewIfNeeded()
  const before = [await links.first().getAttribute("href"), await last.boundingBox()]
  const scrolled = await page.evaluate<number>("scrollY")
  assert.isAbove(scrolled, 0)
  await call("POST", path, { prompt: "A lighthouse" })
  await page.getByRole("button", { name: "Show 1 new entry" }).waitFor()
  assert.strictEqual(await links.first().getAttribute("href"), before[0])
  await page.getByRole("button", { name: "Show 1 new entry" }).click()
  await page.getByRole("cell", { name: "Completed" }).waitFor()
  assert.notStrictEqual(await links.first().getAttribute("href"), before[0])
  await page.setViewportSize({ width: 1280, height: 900 })
}

/** If the stream fails, the page polls; once it responds again, the page is live again. */
const fallback = async (it: ConsolePage, call: ReturnType<typeof requestWith>) => {
  const { context, page } = it
  await page.clock.install()
  await context.route("**/manage/v1/events*", (route) => route.abort())
  await it.open("/tasks")
  await page.getByText("Updated every few seconds").waitFor()
  await page.getByRole("table").waitFor()
  const id = idOf(await call("POST", path, { prompt: "A lighthouse" }))
  const row = page.locator(`a[href$="${id}"]`)
  await page.clock.fastForward(5000)
  await row.waitFor()
  await assertPage(it)
  await context.unroute("**/manage/v1/events*")
  for (let poll = 0; poll < 6; poll += 1) await page.clock.fastForward(5000)
  await page.locator('.live[data-state="live"]').waitFor()
}

/** Without a network the loaded data stay, and the page says why nothing else comes. */
const offline = async (it: ConsolePage) => {
  const { context, page } = it
  await context.setOffline(true)
  await page.getByText("You are offline.").waitFor()
  await page.locator('.live[data-state="offline"]').waitFor()
  await page.getByRole("table").waitFor()
  await page.getByRole("link", { name: "Usage", exact: true }).first().click()
  await page.getByRole("button", { name: /Try again|Reload the page/u }).waitFor()
  await assertPage(it)
  await context.setOffline(false)
  await page.getByText("You are offline.").waitFor({ state: "detached" })
  // The page that could not be opened opens automatically
  await opened(it, "Usage")
  await page.getByRole("slider").waitFor()
  await page.locator('.live[data-state="live"]').waitFor()
}

liveLayer(consoleGateway(env), "120 seconds")("the console", (it) => {
  it.effect(
    "withstands hostile texts, new rows, a failing stream and a lost network",
    () =>
      Effect.gen(function* () {
        const { key, url, userId } = yield* Running
        const screen = yield* consolePage()
        const call = requestWith(url, key)
        yield* signInOnPage(screen, userId)
        yield* Effect.promise(async () => {
          await hostileTexts(screen, call)
          await places(screen, call)
        })
        assert.deepStrictEqual(screen.faults, [])
        yield* Effect.promise(async () => {
          await fallback(screen, call)
          await offline(screen)
        })
        const own = screen.faults.filter((it) => !it.startsWith("Failed to load resource: net::"))
        assert.deepStrictEqual(own, [])
      }),
    180_000
  )

  it.effect(
    "shows nothing to other users, or to the holder of the cookie of an ended session",
    () =>
      Effect.gen(function* () {
        const { key, url, userId } = yield* Running
        const thief = yield* consolePage()
        const stranger = yield* consolePage()
        const { context, page } = stranger
        yield* Effect.promise(async () => {
          const call = requestWith(url, key)
          const operator = requestWith(url, adminToken)
          const task = idOf(await call("POST", path, { prompt: "A secret lighthouse" }))
          const email = "stranger@example.com"
          const other = await operator("POST", "/manage/v1/users", { email })
          const made = await operator("POST", `/manage/v1/users/${other.id}/api-keys`, {
            name: "own",
            scopes: ["manage"]
          })
          await stranger.open("")
          await opened(stranger, "Sign in")
          await page.getByText("Use an API key").click()
          await page.getByLabel("API key or operator token").fill(made.key)
          await page.keyboard.press("Enter")
          await opened(stranger, "Home")
          await page.getByText("Create your first image").waitFor()
          await stranger.open(`/tasks/${task}`)
          await page.getByRole("alert").getByText("Code 2005").waitFor()
          for (const name of ["", "/tasks", "/keys", "/wallet", "/calls", "/usage", "/audit-log"]) {
            await stranger.open(`${name}?user_id=${userId}`)
            await page.getByRole("alert").getByText("Code 1004").first().waitFor()
          }
          for (const name of ["users", `users/${userId}`, "accounts", "catalog"]) {
            await stranger.open(`/${name}`)
            await opened(stranger, "Page not found")
          }
          await goTo(stranger, "Tasks")
          await page.getByText("No tasks yet").waitFor()
          assert.notInclude(await page.content(), "secret lighthouse")
          const cookies = await context.cookies()
          assert.isTrue(
            cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === "Strict")
          )
          await signOut(stranger)
          await opened(stranger, "Sign in")
          // The back button shows nothing of the previous user
          await page.goBack()
          await opened(stranger, "Sign in")
          const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join("; ")
          const asked = await fetch(`${url}/manage/v1/tasks`, { headers: { cookie } })
          const { code } = (await asked.json()) as { readonly code: number }
          assert.deepStrictEqual([asked.status, code], [401, 1006])
          await thief.context.addCookies(cookies)
          await thief.open("/tasks")
          await opened(thief, "Sign in")
        })
        const unexpected = stranger.faults.filter((it) => !it.includes("status of 403"))
        assert.deepStrictEqual([...unexpected, ...thief.faults], [])
      }),
    180_000
  )
})
