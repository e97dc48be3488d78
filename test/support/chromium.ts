import bundled from "@sparticuz/chromium"
import { spawn } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { chromium } from "playwright-core"
import type { Browser } from "playwright-core"
import { inject } from "vitest"
import { browserPidFile } from "./stopBrowser.ts"
import { pause } from "./until.ts"

/**
 * One browser per run. The first test that needs it starts it in the run's folder, and the end of the run stops it
 * (`globalSetup.ts`). Tests use separate contexts, which share nothing.
 */

const flags = [
  "--headless=shell",
  "--no-sandbox",
  "--no-zygote",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-background-networking",
  "--disable-component-update",
  "--no-first-run",
  "--no-default-browser-check",
  // Only one page has the focus. Without these the others get no frames, so that images below the fold never load
  "--disable-background-timer-throttling",
  "--disable-backgrounding-occluded-windows",
  "--disable-renderer-backgrounding",
  "--hide-scrollbars",
  "--force-color-profile=srgb",
  "--font-render-hinting=none",
  "--remote-debugging-port=0"
]

const profile = (folder: string) => join(folder, "chromium")

const start = async (folder: string): Promise<void> => {
  // Also loads the libraries that a minimal machine lacks
  const program = await bundled.executablePath()
  await mkdir(profile(folder), { recursive: true })
  const child = spawn(program, [...flags, `--user-data-dir=${profile(folder)}`, "about:blank"], {
    detached: true,
    stdio: "ignore",
    env: { ...process.env, HOME: profile(folder) }
  })
  child.unref()
  writeFileSync(browserPidFile(folder), String(child.pid))
}

/** The browser's address, which it writes once it listens. */
const endpoint = async (folder: string): Promise<string> => {
  for (let round = 0; round < 6000; round += 1) {
    const text = await readFile(join(profile(folder), "DevToolsActivePort"), "utf8").catch(() => "")
    const [port, path] = text.split("\n")
    if (port && path) return `ws://127.0.0.1:${port}${path}`
    await pause(20)
  }
  throw new Error("the browser did not start")
}

const connect = async (): Promise<Browser> => {
  const folder = inject("postgresFolder")
  try {
    mkdirSync(join(folder, "chromium.starting"))
    await start(folder)
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EEXIST")) throw cause
  }
  // The connection is never closed, so its files belong in the run's folder
  return chromium.connectOverCDP(await endpoint(folder), {
    artifactsDir: join(folder, "artifacts")
  })
}

let connected: Promise<Browser> | undefined

/** The browser of this run. */
export const browser = (): Promise<Browser> => (connected ??= connect())
