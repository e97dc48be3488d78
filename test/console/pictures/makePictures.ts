import { readFileSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Browser, Page, Route } from "playwright-core"
import { ensureConsole } from "../../../src/cli/console/buildConsole.ts"
import { browser } from "../../support/chromium.ts"
import {
  dataAt,
  now,
  received,
  screens,
  sessionOf,
  taskResult,
  wallet
} from "../../support/consoleData.ts"
import type { Screen } from "../../support/consoleData.ts"
import { billReport, catalogReload } from "../../support/operatorData.ts"
import { madeOf, pictureSource } from "./pictureSource.ts"
import { smallPng } from "./smallPng.ts"

/**
 * `npm run pictures`: makes the pictures of docs/console.md. It shows the built console with fixed data, at a fixed
 * time and without a gateway, so that each run makes the same pictures. `npm run pictures -- <folder> [name…]` makes
 * pictures of every page, or of the named ones, at three widths, light and dark, for checking a page during
 * development.
 */

const root = fileURLToPath(new URL("../../../", import.meta.url))
/** Nothing is requested there; browsers compute signatures only on secure pages. */
const origin = "https://gateway.test"

/** A lighthouse, as a model might paint it. */
const lighthouse = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 180" width="320" height="180">
  <rect width="320" height="180" fill="#f3c9a4"/><rect y="120" width="320" height="60" fill="#2f5d7c"/>
  <path d="M190 180 L230 110 L320 150 V180 Z" fill="#4a3f3a"/>
  <path d="M240 120 L246 50 H266 L272 120 Z" fill="#fff"/><path d="M243 85 H269 L270 100 H242 Z" fill="#c0392b"/>
  <rect x="246" y="38" width="20" height="12" fill="#ffe28a"/><path d="M244 38 L256 26 L268 38 Z" fill="#c0392b"/>
  <path d="M246 44 L40 20 V70 Z" fill="#ffe28a" opacity="0.5"/>
</svg>`

/** Replaces the event stream, which would stay open. */
const streamStub = `globalThis.EventSource = class extends EventTarget {
  constructor(url) {
    super()
    setTimeout(() => {
      this.dispatchEvent(new Event("open"))
      const data = url.includes("/vendors/")
        ? ${JSON.stringify(JSON.stringify(taskResult))}
        : ${JSON.stringify(JSON.stringify({ type: "wallet", data: wallet }))}
      this.dispatchEvent(new MessageEvent("message", { data }))
    }, 0)
  }
  close() {}
}`

const types = {
  js: "text/javascript",
  css: "text/css",
  html: "text/html",
  woff2: "font/woff2"
} as const

const typeOf = (name: string): string =>
  Object.entries(types).find(([end]) => name.endsWith(`.${end}`))?.[1] ?? types.html

const fileOf = (path: string) => {
  const name = path.startsWith("/console/assets/")
    ? path.slice("/console/assets/".length)
    : "index.html"
  return {
    body: readFileSync(join(root, "src/http/console/dist", name)),
    contentType: typeOf(name)
  }
}

const answer = async (route: Route, role: "user" | "operator" | "nobody") => {
  const { pathname, searchParams } = new URL(route.request().url())
  if (pathname.startsWith("/console")) return route.fulfill(fileOf(pathname))
  if (pathname.startsWith("/artifacts/")) {
    return route.fulfill({ body: lighthouse, contentType: "image/svg+xml" })
  }
  if (pathname.endsWith("/reconciliations")) return route.fulfill({ json: billReport })
  if (pathname.endsWith("/catalog/reload")) return route.fulfill({ json: catalogReload })
  if (searchParams.get("dry_run") === "true") {
    return route.fulfill({ json: { quote: { amount: "7.50", currency: "credits" } } })
  }
  if (route.request().method() === "POST") {
    return route.fulfill({ status: 202, json: { task_info: taskResult.task_info } })
  }
  const path = pathname.replace("/manage/v1", "")
  const data =
    path === "/session" && role !== "nobody" ? sessionOf(role) : dataAt(path, searchParams)
  if (data !== undefined) return route.fulfill({ json: data })
  return path === "/session"
    ? route.fulfill({ status: 401, json: { title: "Unauthorized", status: 401, code: 1001 } })
    : route.fulfill({ status: 404, json: { title: "Not found", status: 404, code: 2005 } })
}

/** What is filled in before a page is shown. */
const prepare: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  signature: async (page) => {
    await page.getByLabel("Secret of the endpoint").fill(received.secret)
    await page.getByLabel("Headers as received").fill(received.headers)
    await page.getByLabel("Raw body as received").fill(received.body)
    await page.getByRole("button", { name: "Check" }).click()
    await page.locator(".verdict").waitFor()
  },
  bills: async (page) => {
    const file = { name: "bill.csv", mimeType: "text/csv", buffer: Buffer.from("id") }
    await page.getByLabel("Bill", { exact: true }).setInputFiles(file)
    await page.getByRole("button", { name: "Compare" }).click()
    await page.getByText("Margin by model").first().waitFor()
  },
  catalog: async (page) => {
    await page.getByRole("button", { name: "Compare with the file" }).click()
    await page.getByText("2 rows differ from the file").waitFor()
  },
  playground: async (page) => {
    await page.getByLabel("Prompt (required)").fill("A lighthouse at dawn")
    await page.locator("form strong").waitFor()
    await page.getByRole("button", { name: "Run", exact: true }).click()
    await page.getByRole("img", { name: "Result image 1" }).waitFor()
    await page.getByText("Charged").waitFor()
  },
  chat: async (page) => {
    await page.getByLabel("Message (required)").fill("What is a lighthouse for?")
  }
}

interface Viewport {
  readonly width: number
  readonly height: number
  readonly colorScheme: "light" | "dark"
}

/** Makes the picture of a page on this screen. */
const shoot = async (browser: Browser, screen: Screen, viewport: Viewport, isWhole = false) => {
  const { colorScheme, height, width } = viewport
  const context = await browser.newContext({
    viewport: { width, height },
    locale: "en-US",
    timezoneId: "UTC",
    colorScheme,
    reducedMotion: "reduce"
  })
  const page = await context.newPage()
  const faults: Array<string> = []
  page.on("pageerror", (error) => faults.push(String(error)))
  await page.clock.setFixedTime(now)
  await page.addInitScript(streamStub)
  await page.route("**/*", (route) => answer(route, screen.role))
  await page.goto(`${origin}/console${screen.path}`)
  await page.getByRole("heading", { level: 1 }).waitFor()
  await page.waitForLoadState("networkidle")
  await page.locator(".loading").first().waitFor({ state: "detached" })
  await prepare[screen.name]?.(page)
  await page.evaluate("scrollTo(0, 0)")
  await page.evaluate("document.fonts.ready")
  if (await page.locator(".problem[role=alert]").count()) faults.push("a problem is shown")
  if (faults.length > 0) throw new Error(`${screen.name}: ${faults.join(", ")}`)
  const bytes = await page.screenshot({ animations: "disabled", caret: "hide", fullPage: isWhole })
  await context.close()
  return bytes
}

const makePictures = async (browser: Browser) => {
  for (const screen of screens) {
    if (screen.height === undefined) continue
    const viewport = { width: 1280, height: screen.height, colorScheme: "light" } as const
    const bytes = await shoot(browser, screen, viewport)
    await writeFile(join(root, "docs/pictures", `${screen.name}.png`), smallPng(bytes))
  }
  await writeFile(madeOf, `${pictureSource()}\n`)
}

const widths = [
  [1440, 900],
  [1024, 768],
  [390, 844]
] as const

const showAll = async (browser: Browser, folder: string, names: ReadonlyArray<string>) => {
  await mkdir(folder, { recursive: true })
  for (const screen of screens) {
    if (names.length > 0 && !names.includes(screen.name)) continue
    for (const [width, height] of widths) {
      for (const colorScheme of ["light", "dark"] as const) {
        const bytes = await shoot(browser, screen, { width, height, colorScheme }, true)
        await writeFile(join(folder, `${screen.name}-${width}-${colorScheme}.png`), bytes)
      }
    }
  }
}

const main = async ([folder, ...names]: ReadonlyArray<string>) => {
  await ensureConsole()
  const started = await browser()
  await (folder === undefined ? makePictures(started) : showAll(started, folder, names))
  await started.close()
}

await main(process.argv.slice(2))
