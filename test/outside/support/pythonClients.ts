import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"

const folder = join(import.meta.dirname, "../adapters")
const environment = join(folder, "node_modules", ".python")

/** Without Python or PyPI there are no packages: then tests of their clients are left out. */
export const hasPythonClients = existsSync(join(environment, ".installed"))
if (!hasPythonClients) console.log("Skipped: clients in Python are not installed here")

interface Outcome {
  /** The JSON of what the client returned. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly made?: any
  /** The class of the client's error. */
  readonly error?: string
  readonly status?: number | null
}

/** Calls methods of a vendor's official client in Python, one after the other. */
export const callPython = (
  client: string,
  { key, url }: { readonly key: string; readonly url: string },
  calls: ReadonlyArray<readonly [method: string, given: object]>
) =>
  new Promise<ReadonlyArray<Outcome>>((resolve, reject) => {
    const child = spawn(join(environment, "bin", "python"), ["clients.py"], {
      cwd: folder,
      env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1" }
    })
    let printed = ""
    let faults = ""
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (faults += chunk.toString()))
    child.on("error", reject)
    child.on("close", (code) =>
      code === 0 ? resolve(JSON.parse(printed)) : reject(new Error(`${code}: ${faults}`))
    )
    child.stdin.end(JSON.stringify({ client, base: url, key, calls }))
  })
