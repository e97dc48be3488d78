import { lookup } from "node:dns/promises"
import { readFile } from "node:fs/promises"
import { makeResolve } from "../../src/egress/Resolver.ts"
import { startNameServer } from "./nameServer.ts"

/**
 * A program for both runtimes. Looks up 50 names that never resolve and at the same time 50 that do, reads a file, and
 * does a system lookup. Prints the results as JSON.
 */
await using server = await startNameServer((name) =>
  name.endsWith(".stalled.test") ? "silent" : "address"
)
const resolve = makeResolve({ servers: [server.address], timeoutMillis: 400 })
let ended = 0
const stalled = Array.from({ length: 50 }, (_, n) =>
  resolve(`a${n}.stalled.test`).then(
    () => "resolved",
    (error: { readonly code?: string }) => {
      ended += 1
      return String(error.code)
    }
  )
)
const fine = await Promise.all(Array.from({ length: 50 }, (_, n) => resolve(`a${n}.fine.test`)))
await readFile(new URL(import.meta.url))
await lookup("localhost")
const endedBefore = ended
const codes = new Set(await Promise.all(stalled))
process.stdout.write(
  JSON.stringify({ fine: [...new Set(fine.flat())], endedBefore, codes: [...codes] })
)
