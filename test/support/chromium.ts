import bundled from "@sparticuz/chromium"
import { chromium } from "playwright-core"
import type { Browser } from "playwright-core"

/**
 * One browser per worker of the test run. Tests use separate contexts, which share nothing. A browser shared by the
 * workers would attach each of them to the pages of all others.
 */
const start = async (): Promise<Browser> =>
  chromium.launch({
    // Also loads the libraries and fonts that a minimal machine lacks
    executablePath: await bundled.executablePath(),
    // Only ends a start that hangs
    timeout: 100_000,
    args: [
      "--headless=shell",
      "--no-sandbox",
      "--no-zygote",
      "--disable-gpu",
      "--hide-scrollbars",
      "--force-color-profile=srgb",
      "--font-render-hinting=none"
    ]
  })

let started: Promise<Browser> | undefined

/** The browser of this worker. It ends with the worker. */
export const browser = (): Promise<Browser> => (started ??= start())
