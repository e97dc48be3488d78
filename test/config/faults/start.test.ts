import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { compiled, shortLived } from "../../support/compiled.ts"
import { freePort, run, until, untilReady } from "../../support/spawnService.ts"
import { prepareDataDir } from "../../support/stores.ts"
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

/** Each variable with a wrong value, and the line that stops the start. */
const faults: ReadonlyArray<readonly [string, Record<string, string>, RegExp]> = [
  ["PORT is no number", { PORT: "abc" }, /^PORT: .*; set a number from 1 to 65535/],
  ["MASTER_KEY is short", { MASTER_KEY: "short" }, /^MASTER_KEY: .*not 32 bytes.*; set 32 bytes/],
  [
    "DATABASE_URL is no URL",
    { ...secrets, DATABASE_URL: "here" },
    /^DATABASE_URL: .*not a URL.*Write it as postgres:/
  ],
  [
    "nothing listens at DATABASE_URL",
    { ...secrets, DATABASE_URL: "postgres://u:secret@127.0.0.1:1/x" },
    /^DATABASE_URL: nothing listens at 127.0.0.1:1.*Start Postgres/
  ],
  [
    "DATABASE_URL without its secrets",
    { DATABASE_URL: "postgres://u:secret@127.0.0.1:1/x" },
    /^ADMIN_TOKEN: is required with DATABASE_URL; set/
  ],
  ["DATA_DIR is a file", { DATA_DIR: aFile }, /^DATA_DIR: .*Make it a folder/],
  ["DATA_DIR lies under a file", { DATA_DIR: join(aFile, "x") }, /^DATA_DIR: .*Make it a folder/],
  // Node's recursive mkdir retries the refusal of this path for ever
  ["DATA_DIR lies in /proc", { DATA_DIR: "/proc/x" }, /^DATA_DIR: .*Make it a folder/],
  [
    "CATALOG_FILE names an unknown model",
    { DATA_DIR: join(folder, "catalog"), CATALOG_FILE: brokenCatalog },
    /^CATALOG_FILE .*no-such-model.*Correct the file/
  ],
  [
    "ARTIFACT_STORE lies in /proc",
    { DATA_DIR: join(folder, "artifacts"), ARTIFACT_STORE: "/proc/media" },
    /^ARTIFACT_STORE: .*cannot be written to.*; make it a folder/
  ],
  [
    "ARTIFACT_STORE is a URL of something else",
    { DATA_DIR: join(folder, "artifacts"), ARTIFACT_STORE: "https://media.example" },
    /^ARTIFACT_STORE: .*is not a bucket; set a folder, or s3:/
  ],
  [
    "EGRESS_ALLOW is a URL",
    { DATA_DIR: join(folder, "egress"), EGRESS_ALLOW: "http://x" },
    /^EGRESS_ALLOW: .*; set hosts and CIDRs/
  ]
]

// A store of an earlier start: only the last test makes one from nothing
beforeAll(async () => {
  for (const name of ["catalog", "artifacts", "egress", "port", "shared"]) {
    await prepareDataDir(join(folder, name))
  }
})

const program = await compiled()

const start = (env: Record<string, string>) =>
  run(process.execPath, [...shortLived, program], { EMBEDDED_DURABLE: "false", ...env })

const assertOneLine = async (service: ReturnType<typeof start>, line: RegExp) => {
  assert.strictEqual(await service.ended, 1)
  const lines = service.output().trim().split("\n")
  assert.strictEqual(lines.length, 1, service.output())
  assert.match(lines[0]!, line)
  assert.notInclude(lines[0], "secret@")
}

describe("a wrong value stops the start with one line that names the variable, the fault and the remedy", () => {
  for (const [name, env, line] of faults) {
    it(name, () => assertOneLine(start({ PORT: "18080", ...env }), line), 60_000)
  }

  it("PORT is in use", async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo
    try {
      const env = { DATA_DIR: join(folder, "port"), PORT: `${port}` }
      await assertOneLine(start(env), new RegExp(`^PORT: ${port} is in use; stop`))
    } finally {
      server.close()
    }
  }, 180_000)

  it("DATA_DIR is in use by another process, which ends with status 0 on SIGTERM", async () => {
    const port = await freePort()
    const env = { DATA_DIR: join(folder, "shared"), PORT: `${port}` }
    const first = start(env)
    try {
      await untilReady(first, port)
      const second = start({ ...env, PORT: `${await freePort()}` })
      await assertOneLine(second, /^DATA_DIR: .* is in use by the process \d+.*Stop that process/)
      first.kill("SIGTERM")
      assert.strictEqual(await first.ended, 0)
    } finally {
      first.kill("SIGKILL")
    }
  }, 180_000)
})

describe("LOG_FORMAT=json", () => {
  it("every line is JSON, after the first start has printed its key", async () => {
    const port = await freePort()
    const env = { DATA_DIR: join(folder, "json"), PORT: `${port}`, LOG_FORMAT: "json" }
    const outputs: Array<string> = []
    for (const said of [/sk-/, /Listening/]) {
      const service = start(env)
      try {
        await untilReady(service, port)
        await until(service, async () => (said.test(service.output()) ? true : undefined))
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
