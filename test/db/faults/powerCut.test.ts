import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { spawn } from "node:child_process"
import { rm } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { layerEmbedded } from "../../../src/db/Database.ts"
import { compileCache, compiled, shortLived } from "../../support/compiled.ts"
import { prepareDataDir } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const child = await compiled("test/db/faults/embeddedChild.ts")
const hook = fileURLToPath(new URL("../../faults/chaos/powerCut.ts", import.meta.url))

/** Runs the child until it has acknowledged this many more rows, and then cuts the power. */
const runAndCut = (path: string, durable: string, count: number) =>
  new Promise<{ readonly last: number; readonly lost: number }>((resolve, reject) => {
    const program = spawn(
      process.execPath,
      [...shortLived, "--import", hook, child, path, durable],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ...compileCache, POWER_CUT_FOLDER: path }
      }
    )
    let output = ""
    let errors = ""
    const ids = () => output.slice(0, output.lastIndexOf("\n")).split("\n").slice(1)
    program.stderr.on("data", (data) => (errors += String(data)))
    program.stdout.on("data", (data) => {
      output += String(data)
      if (ids().length >= count) program.kill("SIGUSR2")
    })
    program.once("close", () => {
      const last = Number(ids().at(-1))
      const lost = Number(/^(\d+) writes/mu.exec(errors)?.[1])
      if (Number.isInteger(last) && Number.isInteger(lost)) resolve({ last, lost })
      else reject(new Error(`the child printed ${output} ${errors}`))
    })
  })

const rowsIn = (dataDir: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient
    return yield* sql<{ id: number; size: number }>`
      SELECT id::int AS id, length(body)::int AS size FROM acknowledged ORDER BY id`
  }).pipe(Effect.provide(layerEmbedded({ dataDir, durable: true })), Effect.runPromise)

describe("an embedded store that loses every unsynced write in a power cut", () => {
  let dataDir: string
  beforeAll(async () => {
    dataDir = temporaryFolder("power-cut")
    await prepareDataDir(dataDir)
  }, 120_000)
  afterAll(() => rm(dataDir, { recursive: true }))

  it("keeps everything that it has acknowledged, cut after cut", async () => {
    let lost = 0
    for (const count of [3, 120, 40]) {
      const cut = await runAndCut(dataDir, "durable", count)
      lost += cut.lost
      const rows = await rowsIn(dataDir)
      assert.isAtLeast(rows.length, cut.last)
      rows.forEach(({ id, size }, n) => assert.deepStrictEqual([id, size], [n + 1, (n + 1) % 500]))
    }
    // Pages of tables and indexes are written later than the synced log
    assert.isAbove(lost, 0)
  }, 240_000)
})
