import { spawn } from "node:child_process"
import { join } from "node:path"
import { createInterface } from "node:readline"

const folder = join(import.meta.dirname, "vendors")
const environment = join(folder, "node_modules", ".python")

interface Outcome {
  /** The JSON of what the client returned. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly made?: any
  /** The class of the client's error. */
  readonly error?: string
  readonly status?: number | null
}

/** The official Python clients in one process, because loading them takes seconds. */
export const startPythonClients = () => {
  const child = spawn(join(environment, "bin", "python"), ["clients.py"], {
    cwd: folder,
    env: { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["pipe", "pipe", "inherit"]
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    /** Calls a method of a vendor's client, such as `generations.create`. */
    call: async (
      client: string,
      { key, url }: { readonly key: string; readonly url: string },
      method: string,
      given: object
    ): Promise<Outcome> => {
      child.stdin.write(`${JSON.stringify({ client, base: url, key, method, given })}\n`)
      const line = await lines.next()
      if (line.done === true) throw new Error("The clients in Python have ended")
      return JSON.parse(line.value)
    },
    close: () => {
      child.stdin.end()
    }
  }
}
