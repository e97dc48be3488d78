import axe from "axe-core"
import { Effect } from "effect"
import type { BrowserContext, Page } from "playwright-core"
import { assert } from "vitest"
import { listenerBounds } from "../../src/http/server/listener/Listener.ts"
import { browser } from "./chromium.ts"
import { adminToken } from "./gateway.ts"
import { Running, runningGateway } from "./running.ts"

export interface ConsolePage {
  readonly page: Page
  readonly context: BrowserContext
  /** Opens a path below `/console`. */
  readonly open: (path: string) => Promise<void>
  /** Faults of the page: policy violations, errors, and requests to other hosts. */
  readonly faults: ReadonlyArray<string>
  /** The findings of axe on the current page. */
  readonly axeFindings: () => Promise<ReadonlyArray<string>>
  /** Asserts that no element is wider than the screen. */
  readonly assertFits: () => Promise<void>
}

interface Options {
  readonly width?: number
  readonly height?: number
  readonly colorScheme?: "light" | "dark"
}

const watchPolicy = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("CSP " + event.violatedDirective + " " + event.blockedURI + " " + event.sourceFile))`

const axeTags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

/** Ends transitions first, because they change colors. Waiting for them hangs while Chromium draws no frames. */
const runAxe = `document.getAnimations().filter((it) => it.effect.getComputedTiming().endTime < Infinity)
    .forEach((it) => it.finish())
axe.run(document, { resultTypes: ["violations"], runOnly: ${JSON.stringify(axeTags)} })
  .then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map((it) =>
    [it.html.slice(0, 200), it.any[0]?.message].join(" ")).join(" | ")))`

/** How much wider than the screen the page is. Tables scroll within themselves. */
const overflow = `document.documentElement.scrollWidth - document.documentElement.clientWidth`

/** Statuses that pages expect, such as that of the session check. The browser reports each as an error. */
const expected =
  /Failed to load resource: the server responded with a status of (?:400|401|402|404|409|429)/u

/** A separate browser context without cookies or stored data. It is closed after the test. */
export const consolePage = (options: Options = {}) =>
  Effect.gen(function* () {
    const { url } = yield* Running
    const { colorScheme = "light", height = 900, width = 1280 } = options
    const context = yield* Effect.acquireRelease(
      Effect.promise(async () =>
        (await browser()).newContext({
          viewport: { width, height },
          colorScheme,
          locale: "en-US",
          // Without animations, colors do not change while axe measures them
          reducedMotion: "reduce"
        })
      ),
      (it) => Effect.promise(() => it.close())
    )
    return yield* Effect.promise(() => watched(context, url))
  })

const watched = async (context: BrowserContext, url: string): Promise<ConsolePage> => {
  const faults: Array<string> = []
  const page = await context.newPage()
  // Long, because it only ends hanging pages; a story has slow steps on a busy machine
  page.setDefaultTimeout(60_000)
  await page.addInitScript(watchPolicy)
  page.on("console", (message) => {
    const text = message.text()
    if (message.type() === "error" && !expected.test(text)) faults.push(text)
  })
  page.on("pageerror", (error) => faults.push(String(error)))
  context.on("request", (request) => {
    const to = request.url()
    if (!to.startsWith(`${url}/`) && !/^(?:data|blob):/u.test(to)) faults.push(`foreign: ${to}`)
  })
  return {
    page,
    context,
    faults,
    open: async (path) => {
      await page.goto(`${url}/console${path}`)
    },
    axeFindings: async () => {
      // Stays while the page is not loaded again
      if (await page.evaluate("!globalThis.axe")) await page.evaluate(axe.source)
      return page.evaluate(runAxe)
    },
    assertFits: async () => {
      const over = await page.evaluate<number>(overflow)
      assert.isAtMost(over, 0, `${page.url()} is wider than the screen`)
    }
  }
}

/** Signs in: a user with a one-time link, such as the first start prints; the operator (`null`) with the token. */
export const signInOnPage = (it: ConsolePage, userId: string | null) =>
  Effect.gen(function* () {
    const { url } = yield* Running
    yield* Effect.promise(async () => {
      await (userId === null ? byToken(it) : byLink(it, url, userId))
      await it.page.getByRole("banner").waitFor()
    })
  })

/** A page on which the running gateway's user is signed in. */
export const userPage = (options?: Options) =>
  Effect.gen(function* () {
    const { userId } = yield* Running
    const screen = yield* consolePage(options)
    yield* signInOnPage(screen, userId)
    return screen
  })

/** A page on which the operator is signed in. */
export const operatorPage = (options?: Options) =>
  Effect.tap(consolePage(options), (screen) => signInOnPage(screen, null))

const byLink = async ({ page }: ConsolePage, url: string, userId: string) => {
  const response = await fetch(`${url}/manage/v1/users/${userId}/sign-in-links`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}` }
  })
  const { url: link } = (await response.json()) as { readonly url: string }
  await page.goto(link)
  await page.getByRole("button", { name: "Sign in with this link" }).click()
}

const byToken = async ({ open, page }: ConsolePage) => {
  await open("/sign-in")
  await page.getByText("Use an API key or the operator token").click()
  await page.getByLabel("API key or operator token", { exact: true }).fill(adminToken)
  await page.getByRole("button", { name: "Sign in with this key" }).click()
}

/** A sandbox gateway as pages see it. */
export const consoleGateway = (
  env: Record<string, string> = {},
  receiver?: Parameters<typeof runningGateway>[2],
  host?: Parameters<typeof runningGateway>[3]
) => runningGateway({ SIMULATOR_DELAY: "200 millis", ...env }, listenerBounds, receiver, host)
