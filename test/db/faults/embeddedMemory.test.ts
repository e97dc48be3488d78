import { assert, describe, it } from "@effect/vitest"
import { spawn } from "node:child_process"
import { readFileSync, rmSync } from "node:fs"
import { startFlags } from "../../../bench/startFlags.ts"
import { compileCache, compiled } from "../../support/compiled.ts"
import { freePort, killAtExit } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pause, until } from "../../support/until.ts"

/** In MB, from /proc. */
const memory = (pid: number) => {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "mu").exec(status)?.[1]) / 1024
  return { resident: megabytes("VmRSS"), highest: megabytes("VmHWM") }
}

const root = new URL("../../../", import.meta.url)

/** Starts the bundled service as `npm start` does, with this data folder. Returns its memory some time after `/readyz`. */
const memoryAfterStart = async (dataDir: string) => {
  const port = String(await freePort())
  const { HOME, PATH } = process.env
  const child = spawn(process.execPath, [...startFlags, await compiled()], {
    cwd: root,
    stdio: "ignore",
    env: { HOME, PATH, ...compileCache, DATA_DIR: dataDir, PORT: port }
  })
  killAtExit(child)
  const ended = new Promise((resolve) => child.once("exit", resolve))
  try {
    const ask = () => fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
    const ready = async () => ((await ask())?.status === 200 ? true : undefined)
    await until(ready, { millis: 90_000, what: "the start" })
    // The compiler continues in the background
    await pause(3000)
    return memory(child.pid ?? 0)
  } finally {
    child.kill("SIGKILL")
    await ended
  }
}

/** The measured value is 245 MB. The rest allows for other versions of Node and other machines. */
const residentMax = 310

describe("the memory of the service on the embedded store", () => {
  it("is small after the start with a new or an existing store, without a peak", async () => {
    const dataDir = temporaryFolder("embedded-memory")
    try {
      for (const store of ["new", "existing"]) {
        const { highest, resident } = await memoryAfterStart(dataDir)
        assert.isBelow(resident, residentMax, store)
        assert.isBelow(highest, residentMax, store)
      }
    } finally {
      rmSync(dataDir, { recursive: true })
    }
  }, 240_000)
})
