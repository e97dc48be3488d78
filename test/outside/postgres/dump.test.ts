import { Effect, Layer, ManagedRuntime, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { Client } from "pg"
import { afterAll, assert, describe, it } from "vitest"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import {
  advance,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { newServer, stopServer } from "../../support/postgresProcess.ts"
import type { Binaries } from "../../support/postgresProcess.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/operating.md#backup */

const page = readFileSync(join(import.meta.dirname, "../../../docs/operating.md"), "utf8")
const section = page.split("\n## Backup\n")[1]?.split("\n## ")[0] ?? ""
const [dump = "", restore = ""] = section.match(/(?<=^```sh\n)[^`]+(?=```$)/gmu) ?? []

const outputOf = (program: string, ...words: ReadonlyArray<string>): string =>
  spawnSync(program, words, { encoding: "utf8" }).stdout ?? ""
const majorOf = (program: string) => Number(/\) (\d+)/u.exec(outputOf(program, "--version"))?.[1])

/** The server that belongs to this machine's `pg_dump`, which refuses newer servers. */
const installedServer = (): Binaries | undefined => {
  const folder = outputOf("pg_config", "--bindir").trim()
  const [initdb, postgres] = [join(folder, "initdb"), join(folder, "postgres")]
  return existsSync(postgres) && majorOf(postgres) <= majorOf("pg_dump")
    ? { initdb, postgres }
    : undefined
}

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const installed = installedServer()
const [folder, media] = [temporaryFolder("dump"), temporaryFolder("dump-media")]
afterAll(async () => {
  await stopServer(folder)
  await Promise.all([folder, media].map((it) => rm(it, { recursive: true, force: true })))
})

const gatewayOn = (url: string) =>
  ManagedRuntime.make(
    layerGateway({
      database: Migrations.layer().pipe(
        Layer.provideMerge(layerPostgres({ url: Redacted.make(url) })),
        Layer.orDie
      ),
      env: { ARTIFACT_STORE: media }
    }).pipe(Layer.provideMerge(TestClock.layer({ warningDelay: "1 day" })))
  )

const finished = (call: ReturnType<typeof callWith>, own: string) =>
  eventually(
    Effect.andThen(advance("1 second"), call("GET", own)),
    ({ json }) => json.task_info.status === "completed"
  )

const create = (call: ReturnType<typeof callWith>) =>
  Effect.map(
    call("POST", image, { prompt: "A lighthouse" }),
    ({ json }) => `${image}/${json.task_info.id}`
  )

/** Uses a separate role that owns its database and may create others, with no further rights. */
const makeDatabase = async (server: string) => {
  const client = new Client(server)
  await client.connect()
  await client.query("CREATE ROLE gateway LOGIN CREATEDB")
  await client.query("CREATE DATABASE gateway OWNER gateway TEMPLATE template0")
  await client.end()
  return server.replace("postgres@", "gateway@").replace(/postgres$/u, "gateway")
}

describe("the dump of docs/operating.md", () => {
  it("contains the whole database, and is restored into an empty one of the same kind", () => {
    assert.match(dump, /^pg_dump --format=custom --file=gateway\.dump "\$DATABASE_URL"\n$/u)
    assert.match(restore, /^createdb --maintenance-db="\$DATABASE_URL" --template=template0 .*\n/u)
    assert.match(
      restore,
      /\npg_restore --exit-on-error .*--dbname="\$RESTORED_URL" gateway\.dump\n$/u
    )
  })

  if (installed === undefined) {
    it("names programs of Postgres (not run, because pg_dump and its server are missing)", () => {
      const programs = (dump + restore).match(/^\w+/gmu)
      assert.deepEqual(programs, ["pg_dump", "createdb", "pg_restore"])
    })
    return
  }

  it("is restored with the page's commands: a gateway continues the tasks, and no wallet drifts", async () => {
    const server = await newServer(folder, [], undefined, installed)
    await server.start()
    const url = await makeDatabase(server.url)
    const restoredUrl = url.replace(/gateway$/u, "restored")
    const env = { ...process.env, DATABASE_URL: url, RESTORED_URL: restoredUrl }
    const run = (lines: string) =>
      execFileSync("sh", ["-ec", lines], { cwd: folder, env, encoding: "utf8", stdio: "pipe" })

    const before = gatewayOn(url)
    const { done, key, running } = await before.runPromise(
      Effect.gen(function* () {
        const { call, key } = yield* makeUser()
        const done = yield* create(call)
        yield* finished(call, done)
        return { done, key, running: yield* create(call) }
      })
    )
    run(dump)
    await before.dispose()
    run(restore)

    const after = gatewayOn(restoredUrl)
    await after.runPromise(
      Effect.gen(function* () {
        const call = callWith(key)
        assert.isNotEmpty((yield* finished(call, done)).json.images)
        assert.isNotEmpty((yield* finished(call, running)).json.images)
        yield* advance("40 seconds", "10 seconds")
        const queues = yield* operator("GET", "/manage/v1/queues")
        assert.strictEqual(queues.json.wallets.drift, 0)
        assert.isNotNull(queues.json.wallets.audited_at)
        const { available_balance, held_balance } = (yield* call("GET", "/manage/v1/wallet")).json
        assert.deepEqual(
          { available_balance, held_balance },
          { available_balance: "985.00", held_balance: "0.00" }
        )
      })
    )
    await after.dispose()
  }, 120_000)
})
