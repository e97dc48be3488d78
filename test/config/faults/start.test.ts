import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync, writeFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { vi } from "vitest"
import { teardown } from "../../../src/cli/Service.ts"
import { oneProcess } from "../../../src/cli/ServiceLayers.ts"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { withEnvironment } from "../../support/commandLine.ts"
import { compiled, shortLived } from "../../support/compiled.ts"
import { listen } from "../../support/localServer.ts"
import { newServer, runFolderPrefix, stopServer } from "../../support/postgresProcess.ts"
import { freePort, run, until, untilReady } from "../../support/spawnService.ts"
import { freshDatabase, processDatabaseUrl } from "../../support/stores.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const folder = temporaryFolder("start")
const aFile = join(folder, "file")
const brokenCatalog = join(folder, "catalog.json")
writeFileSync(aFile, "")
writeFileSync(brokenCatalog, '{"change":{"no-such-model":{}}}')

const secrets = {
  ADMIN_TOKEN: "op_a_token_for_this_test",
  MASTER_KEY: Buffer.alloc(32, 1).toString("base64")
}

/**
 * Invalid values, and the line printed when the start fails. Those of single variables: test/conformance/configuration.test.ts.
 */
const faults: ReadonlyArray<readonly [string, Record<string, string>, RegExp]> = [
  [
    "DATABASE_URL is not a URL",
    { ...secrets, DATABASE_URL: "here" },
    /^DATABASE_URL: .*not a URL.*Write it as postgres:/
  ],
  [
    "nothing listens at DATABASE_URL",
    { ...secrets, DATABASE_URL: "postgres://u:secret@127.0.0.1:1/x" },
    /^DATABASE_URL: nothing listens at 127.0.0.1:1.*Start Postgres/
  ],
  ["DATA_DIR is a file", { DATA_DIR: aFile }, /^DATA_DIR: .*Make it a folder/],
  ["DATA_DIR is below a file", { DATA_DIR: join(aFile, "x") }, /^DATA_DIR: .*Make it a folder/],
  // Node's recursive mkdir retries the refusal of this path forever
  ["DATA_DIR is in /proc", { DATA_DIR: "/proc/x" }, /^DATA_DIR: .*Make it a folder/],
  [
    "CATALOG_FILE names an unknown model",
    { CATALOG_FILE: brokenCatalog },
    /^CATALOG_FILE .*no-such-model.*Correct the file/
  ],
  [
    "ARTIFACT_STORE is a URL but not of a bucket",
    { ARTIFACT_STORE: "https://media.example" },
    /^ARTIFACT_STORE: .*is not a bucket; set a folder, or s3:/
  ],
  ["EGRESS_ALLOW is a URL", { EGRESS_ALLOW: "http://x" }, /^EGRESS_ALLOW: .*; set hosts and CIDRs/],
  [
    "the key of a vendor of the catalog has a wrong setting",
    { DEEPSEEK_API_KEY: "a;weight=x" },
    /^DEEPSEEK_API_KEY: key 1 needs a weight/
  ]
]

const program = await compiled()

const start = (env: Record<string, string>) =>
  run(process.execPath, [...shortLived, program], { EMBEDDED_DURABLE: "false", ...env })

const assertOneLine = (code: number | null, output: string, line: RegExp) => {
  assert.strictEqual(code, 1, output)
  const lines = output.trim().split("\n")
  assert.strictEqual(lines.length, 1, output)
  assert.match(lines[0]!, line)
  assert.notInclude(lines[0], "secret@")
}

/** Starts the service's layers in this process until they fail, and returns what a separate process would print. */
const startHere = Effect.fnUntraced(function* (env: Record<string, string>) {
  // Vite sets a variable of this name
  yield* withEnvironment({ BASE_URL: "http://localhost:8080", ...env })
  const written: Array<string> = []
  const note = (...words: ReadonlyArray<unknown>) => written.push(`${words.join(" ")}\n`)
  const exit = yield* Effect.exit(oneProcess).pipe(
    Effect.provideService(Console.Console, { ...globalThis.console, log: note, error: note })
  )
  const stderr = vi.spyOn(process.stderr, "write")
  stderr.mockImplementation((text) => written.push(String(text)) > 0)
  let code: number | null = null
  teardown(exit, (it) => {
    code = it
  })
  stderr.mockRestore()
  return { code, output: written.join("") }
}, Effect.scoped)

const oneConnection = ({ href }: URL) =>
  layerPostgres({ url: Redacted.make(href), maxConnections: 1 })

const startOn = ({ href }: URL, env: Record<string, string> = {}) =>
  startHere({
    ...secrets,
    DATABASE_URL: href,
    DATA_DIR: join(folder, "shared"),
    PORT: "18080",
    ...env
  })

describe("the start stops with one line that names the variable, the fault and the remedy, and makes no store, if", () => {
  for (const [name, env, line] of faults) {
    it.live(name, () =>
      Effect.gen(function* () {
        const dataDir = join(folder, "never made")
        const { code, output } = yield* startHere({ PORT: "18080", DATA_DIR: dataDir, ...env })
        assertOneLine(code, output, line)
        assert.isFalse(existsSync(dataDir))
      })
    )
  }

  // On Postgres, which starts faster: the folder is tried after either store is open
  it.live("ARTIFACT_STORE is in /proc", () =>
    Effect.gen(function* () {
      const env = { ARTIFACT_STORE: "/proc/media" }
      const { code, output } = yield* startOn(yield* processDatabaseUrl, env)
      assertOneLine(code, output, /^ARTIFACT_STORE: .*cannot be written to.*; make it a folder/)
    })
  )

  it("DATABASE_URL names a standby", async () => {
    const folder = await mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))
    await using stack = new AsyncDisposableStack()
    stack.defer(async () => {
      await stopServer(folder)
      await rm(folder, { recursive: true })
    })
    const server = await newServer(folder)
    await server.start()
    const url = new URL(server.url)
    await Effect.runPromise(Effect.provide(Migrations.migrate(), oneConnection(url)))
    await stopServer(folder, "SIGINT")
    await writeFile(join(server.data, "standby.signal"), "")
    await server.start()
    const { code, output } = await Effect.runPromise(startOn(url))
    assertOneLine(code, output, /^DATABASE_URL: .*no writes: .*read-only.*Name the primary/)
  })

  it.live("DATABASE_URL names a read-only database", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase()
      yield* Effect.gen(function* () {
        yield* Migrations.migrate()
        const sql = yield* SqlClient
        const name = url.pathname.slice(1)
        yield* sql.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      }).pipe(Effect.provide(oneConnection(url)))
      const { code, output } = yield* startOn(url)
      assertOneLine(code, output, /^DATABASE_URL: .*no writes: .*read-only.*Name the primary/)
    }).pipe(Effect.scoped)
  )

  it.live("DATABASE_URL names a database with another encoding", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase({ template: "template0 ENCODING 'LATIN1' LOCALE 'C'" })
      const { code, output } = yield* startOn(url)
      assertOneLine(code, output, /^DATABASE_URL: the database .* has the encoding LATIN1\. Create/)
    }).pipe(Effect.scoped)
  )

  it.live("PORT is in use", () =>
    Effect.gen(function* () {
      const server = createServer()
      const port = yield* Effect.promise(() => listen(server))
      yield* Effect.addFinalizer(() => Effect.sync(() => server.close()))
      const { href } = yield* processDatabaseUrl
      const { code, output } = yield* startHere({
        ...secrets,
        DATABASE_URL: href,
        DATA_DIR: join(folder, "shared"),
        PORT: `${port}`
      })
      assertOneLine(code, output, new RegExp(`^PORT: ${port} is in use; stop`))
    })
  )

  it("PORT is invalid, in a separate process", async () => {
    const service = start({ PORT: "abc" })
    const line = /^PORT: .*; set a number from 1 to 65535/
    assertOneLine(await service.ended, service.output(), line)
  }, 60_000)
})

/** A new store with two processes, one after the other, and a third one alongside the first. */
describe("a process", () => {
  it("stops if another one uses its DATA_DIR, ends with status 0 on SIGTERM, and prints its key only at the first start; with LOG_FORMAT=json later starts print only JSON", async () => {
    const port = await freePort()
    const env = { DATA_DIR: join(folder, "json"), PORT: `${port}`, LOG_FORMAT: "json" }
    const outputs: Array<string> = []
    for (const said of [/sk-/, /Listening/]) {
      const service = start(env)
      try {
        await untilReady(service, port)
        await until(service, async () => (said.test(service.output()) ? true : undefined))
        if (outputs.length === 0) {
          const other = start({ ...env, PORT: `${await freePort()}` })
          const line = /^DATA_DIR: .* is in use by the process \d+.*Stop that process/
          assertOneLine(await other.ended, other.output(), line)
        }
        service.kill("SIGTERM")
        assert.strictEqual(await service.ended, 0)
      } finally {
        service.kill("SIGKILL")
      }
      outputs.push(service.output())
    }
    const [first = "", second = ""] = outputs
    assert.match(first, /sk-\S{20,}/)
    assert.notInclude(second, "sk-")
    for (const line of second.trim().split("\n")) assert.doesNotThrow(() => JSON.parse(line), line)
  }, 180_000)
})
