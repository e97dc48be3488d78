import assert from "node:assert"
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { randomInt } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { compileCache } from "./compiled.ts"

/** The root folder of the project. */
export const projectFolder = fileURLToPath(new URL("../../", import.meta.url))

/**
 * Ports outside the system's ephemeral range, so that neither connections nor listeners on port 0 receive one of them.
 */
const reservedPorts = { first: 15_000, count: 15_000 }

/** Contains a file per reserved port, which names the process that reserved it. */
const reservations = join(tmpdir(), "gateway-test-ports")

/**
 * A port that stays free until it is bound, even while the process on it restarts. No other test, of this or another
 * run, gets it before this process has ended.
 */
export const freePort = async (): Promise<number> => {
  const port = reservedPorts.first + randomInt(reservedPorts.count)
  if (!reserve(join(reservations, String(port)))) return freePort()
  const server = createServer()
  try {
    await once(server.listen(port, "127.0.0.1"), "listening")
  } catch {
    return freePort()
  }
  await once(server.close(), "close")
  return port
}

const reserve = (file: string): boolean => {
  mkdirSync(reservations, { recursive: true })
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" })
    return true
  } catch {
    // A later call may reuse the reservation of a process that has ended
    if (!isAlive(ownerOf(file))) rmSync(file, { force: true })
    return false
  }
}

const ownerOf = (file: string): number => {
  try {
    return Number(readFileSync(file, "utf8"))
  } catch {
    return process.pid
  }
}

/** Whether a process with this id is running. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export interface Spawned {
  readonly pid: number
  /** Standard output and standard error so far. */
  readonly output: () => string
  /** Exit status; `null` after a signal. */
  readonly ended: Promise<number | null>
  readonly hasEnded: () => boolean
  readonly kill: (signal: NodeJS.Signals) => void
}

const children = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL")
})

/**
 * Kills the child when this process exits at the latest, because a test that times out leaves its processes running.
 */
export const killAtExit = (child: ChildProcess): void => {
  children.add(child)
  child.once("exit", () => children.delete(child))
}

/** Runs a command with only those variables of this process that are needed to find programs and temporary files. */
export const run = (
  command: string,
  words: ReadonlyArray<string>,
  env: Record<string, string>,
  cwd = projectFolder
): Spawned => {
  const { HOME = "", PATH = "" } = process.env
  const child = spawn(command, words, { cwd, env: { PATH, HOME, ...compileCache, ...env } })
  killAtExit(child)
  let output = ""
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text
      // Vitest shows it with a failing test
      console.log(text)
    })
  }
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code) => resolve(code))
  })
  return {
    pid: child.pid!,
    output: () => output,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal) => void child.kill(signal)
  }
}

/** Waits until `read` returns something. Fails when the process has ended, or after 110 seconds, before a test times out. */
export const until = async <A>(
  service: Spawned,
  read: () => Promise<A | undefined>
): Promise<A> => {
  for (let waited = 0; waited < 110_000 && !service.hasEnded(); waited += 50) {
    const found = await read().catch(() => undefined)
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(
    `Timed out while waiting for the expected result. Output of the service:\n${service.output()}`
  )
}

/** Waits for `/readyz`. */
export const untilReady = (service: Spawned, port: number) =>
  until(service, async () =>
    (await fetch(`http://127.0.0.1:${port}/readyz`)).ok ? true : undefined
  )

/** Asserts that the console is served: its page, and the script that the page references. */
export const assertConsole = async (port: number): Promise<void> => {
  const page = await fetch(`http://127.0.0.1:${port}/console`)
  const script = / src="([^"]+)"/u.exec(await page.text())?.[1] ?? ""
  const loaded = await fetch(`http://127.0.0.1:${port}${script}`)
  const type = loaded.headers.get("content-type")
  assert.deepStrictEqual(
    [page.status, loaded.status, type],
    [200, 200, "text/javascript; charset=utf-8"]
  )
  await loaded.text()
}
