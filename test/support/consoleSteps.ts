import type { Locator } from "playwright-core"
import { assert } from "vitest"
import type { ConsolePage } from "./consolePage.ts"
import { until } from "./until.ts"

/** Steps that several console stories use. */

/** Asserts that axe finds nothing and that no element is wider than the screen. */
export const assertPage = async (it: ConsolePage) => {
  assert.deepStrictEqual(await it.axeFindings(), [], it.page.url())
  await it.assertFits()
}

/** Waits until the page has this heading and has loaded. */
export const opened = async ({ page }: ConsolePage, title: string) => {
  await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor()
  await page.locator(".loading").first().waitFor({ state: "detached" })
}

/** Waits until the picture of an `img` element has loaded, and returns its width in pixels. */
export const loadedWidth = (image: Locator): Promise<number> =>
  until<number>(async () => (await image.evaluate((it) => it.naturalWidth)) || false, {
    what: "the picture"
  })

/** Follows a link of the navigation. */
export const goTo = async (it: ConsolePage, link: string, title = link) => {
  const navigation = it.page.getByRole("navigation")
  await navigation.getByRole("link", { name: link, exact: true }).first().click()
  await opened(it, title)
}

/** Chooses an action in the menu of a row or page. */
export const act = async ({ page }: ConsolePage, of: string, name: string) => {
  await page.getByRole("button", { name: `Actions for ${of}`, exact: true }).click()
  await page.getByRole("button", { name, exact: true }).click()
}

export const signOut = async ({ page }: ConsolePage) => {
  await page.getByRole("button", { name: /Account menu/u }).click()
  await page.getByRole("button", { name: "Sign out" }).click()
}

const focused = `(() => {
  const it = document.activeElement
  return [it.tagName, it.getAttribute("aria-label") ?? "", it.innerText ?? "",
    ...Array.from(it.labels ?? [], (label) => label.innerText)].join(" ")
})()`

/** Moves the focus, using only Tab, to the element with this name. */
export const tabTo = async ({ page }: ConsolePage, name: RegExp, presses = 60) => {
  const seen: Array<string> = []
  for (let press = 0; press < presses; press += 1) {
    await page.keyboard.press("Tab")
    const at = await page.evaluate<string>(focused)
    if (name.test(at)) return
    seen.push(at)
  }
  assert.fail(`no ${name} by Tab, but ${seen.join(" | ")}`)
}

/**
 * A text that would run as a script if it became HTML. The policy would report it, and its request would be noticed.
 */
export const hostile = (name: string) => `<img src=x onerror=alert(1)>${name}`
