import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { consoleGateway, consolePage, signInOnPage } from "../../support/consolePage.ts"
import type { ConsolePage } from "../../support/consolePage.ts"
import { loadedWidth, assertPage, signOut } from "../../support/consoleSteps.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { Running } from "../../support/running.ts"

/** A prompt is the title of its task, shown as text. */
const title = "<img src=x onerror=alert(1)> A lighthouse"

const create = Effect.gen(function* () {
  const { key, url } = yield* Running
  return yield* Effect.promise(async () => {
    const response = await fetch(`${url}/vendors/alibaba/v1/text-to-image-max/generation`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ prompt: title })
    })
    const created = (await response.json()) as { readonly task_info: { readonly id: string } }
    return created.task_info.id
  })
})

const heading = (it: ConsolePage, name: string) =>
  Effect.promise(() => it.page.getByRole("heading", { level: 1, name, exact: true }).waitFor())

liveLayer(consoleGateway(), "120 seconds")("the first pages of the console", (it) => {
  it.effect("work after a sign-in by link, without foreign requests or findings of axe", () =>
    Effect.gen(function* () {
      const { userId } = yield* Running
      const screen = yield* consolePage()
      const { open, page } = screen
      // A deep link leads to sign-in and back
      yield* Effect.promise(() => open("/tasks?status=completed"))
      yield* heading(screen, "Sign in")
      yield* Effect.promise(() => assertPage(screen))
      assert.include(page.url(), "/console/sign-in?next=")
      yield* signInOnPage(screen, userId)
      yield* heading(screen, "Home")
      assert.notInclude(page.url(), "#")
      yield* Effect.promise(() => page.getByText("Create your first image").waitFor())
      yield* Effect.promise(() => assertPage(screen))
      const id = yield* create
      // Home is updated automatically
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: title }).first().waitFor()
        await page.getByRole("link", { name: "Tasks", exact: true }).first().click()
      })
      yield* heading(screen, "Tasks")
      yield* Effect.promise(async () => {
        await page.getByRole("cell", { name: "Completed" }).waitFor()
        await page.getByRole("button", { name: "Failed", exact: true }).click()
        await page.getByText("No tasks match these filters").waitFor()
        assert.match(page.url(), /\?status=failed$/u)
        await page.getByRole("button", { name: "Completed", exact: true }).click()
        await page.getByRole("cell", { name: "Completed" }).waitFor()
      })
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(() => page.getByRole("link", { name: title }).click())
      yield* heading(screen, title)
      yield* Effect.promise(async () => {
        assert.include(page.url(), id)
        const image = page.getByRole("img", { name: "Result image 1" })
        await image.scrollIntoViewIfNeeded()
        await loadedWidth(image)
        // The prompt stays text
        await page.getByText("onerror=alert(1)").nth(1).waitFor()
        await page.getByText("7.50 credits charged").waitFor()
        await page.getByText("Attempt 1 at alibaba").waitFor()
      })
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Run again" }).click()
        const dialog = page.getByRole("dialog")
        await dialog.getByText("It costs 7.50 credits").waitFor()
        assert.deepStrictEqual(await screen.axeFindings(), [])
        await dialog.getByRole("button", { name: "Run again" }).click()
        await page.waitForURL((to) => !to.pathname.endsWith(id))
        await page.getByRole("img", { name: "Result image 1" }).waitFor()
      })
      // Only the cookie is stored, which scripts cannot read
      const kept = yield* Effect.promise(() =>
        page.evaluate("document.cookie + localStorage.length")
      )
      assert.strictEqual(kept, "0")
      yield* Effect.promise(() => signOut(screen))
      yield* heading(screen, "Sign in")
      assert.deepStrictEqual(screen.faults, [])
    })
  )

  it.effect("work in dark mode at 360 px, with the menu and the key and password forms", () =>
    Effect.gen(function* () {
      const { key } = yield* Running
      yield* create
      const screen = yield* consolePage({ width: 360, height: 640, colorScheme: "dark" })
      const { open, page } = screen
      yield* Effect.promise(() => open("/tasks"))
      yield* heading(screen, "Sign in")
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(async () => {
        await page.getByLabel("E-mail address").fill("nobody@example.com")
        await page.getByLabel("Password").fill("wrong")
        await page.keyboard.press("Enter")
        await page.getByRole("alert").getByText("Trace id").waitFor()
      })
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(async () => {
        await page.getByText("Use an API key").click()
        await page.getByLabel("API key or operator token").fill(key)
        await page.keyboard.press("Enter")
      })
      yield* heading(screen, "Tasks")
      yield* Effect.promise(() => page.getByRole("table").waitFor())
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(async () => {
        await page.getByRole("button", { name: "Menu", exact: true }).click()
        await assertPage(screen)
        await page.getByRole("link", { name: "Home", exact: true }).click()
        await page.getByRole("heading", { name: "Latest tasks" }).waitFor()
      })
      yield* heading(screen, "Home")
      yield* Effect.promise(() => assertPage(screen))
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: title }).first().click()
        await page.getByRole("heading", { name: "Timeline" }).waitFor()
      })
      yield* Effect.promise(() => assertPage(screen))
      assert.deepStrictEqual(screen.faults, [])
    })
  )

  it.effect("lead to sign-in when the session has ended elsewhere, and then back", () =>
    Effect.gen(function* () {
      const { userId } = yield* Running
      const screen = yield* consolePage()
      const { context, page } = screen
      yield* signInOnPage(screen, userId)
      yield* Effect.promise(async () => {
        await page.getByRole("link", { name: "Tasks", exact: true }).first().click()
        const task = page.getByRole("link", { name: title }).first()
        await task.waitFor()
        await context.clearCookies()
        await task.click()
      })
      yield* heading(screen, "Sign in")
      assert.include(page.url(), `next=${encodeURIComponent("/tasks/")}`)
      yield* Effect.promise(async () => {
        await page.getByText("Use an API key").click()
        await page.getByLabel("API key or operator token").fill(adminToken)
        await page.keyboard.press("Enter")
      })
      // The operator has no tasks
      yield* heading(screen, "Page not found")
      yield* Effect.promise(() => page.getByRole("link", { name: "Go to the home page" }).click())
      yield* Effect.promise(() => page.getByText("Every wallet matches").waitFor())
      yield* Effect.promise(() => assertPage(screen))
      assert.deepStrictEqual(screen.faults, [])
    })
  )
})
