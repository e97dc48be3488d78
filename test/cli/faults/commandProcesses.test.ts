import { Effect } from "effect"
import { spawn } from "node:child_process"
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { heapFlags } from "../../../src/cli/HeapFlags.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { compileCache, compiled, shortLived } from "../../support/compiled.ts"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { GatewayProcess } from "../../support/gatewayProcess.ts"
import { killAtExit } from "../../support/spawnService.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"

/** docs/cli.md, docs/operating.md#backup, ADR 0221. One run, because each process costs a second. */

const folder = temporaryFolder("commands")

describe("gateway as a process", () => {
  it(
    "serves, runs and listens, and restores wallet, tasks and media from a backup",
    { timeout: 400_000 },
    async () => {
      const program = await compiled("src/cli/gateway.ts")
      const node = [process.execPath, ...shortLived]
      const dataDir = join(folder, "data")
      const env: Record<string, string> = {
        ...compileCache,
        PATH: process.env.PATH ?? "",
        DATA_DIR: dataDir,
        ADMIN_TOKEN: adminToken,
        MASTER_KEY: masterKey
      }
      const start = (...args: ReadonlyArray<string>) => {
        const child = spawn(node[0]!, [...node.slice(1), program, ...args], { env })
        killAtExit(child)
        const ran = { out: "", error: "", pid: child.pid }
        child.stdout.on("data", (chunk: Buffer) => (ran.out += chunk.toString()))
        child.stderr.on("data", (chunk: Buffer) => (ran.error += chunk.toString()))
        const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
        return { child, ran, ended }
      }
      const gateway = async (...args: ReadonlyArray<string>) => {
        const { ended, ran } = start(...args)
        return { ...ran, code: await ended, ...ran }
      }
      /**
       * Runs the command in this process, where a start costs nothing, for commands that show nothing about their
       * process.
       */
      const here = (...args: ReadonlyArray<string>) =>
        withEnvironment(env).pipe(
          Effect.andThen(runCommand(args, env)),
          Effect.scoped,
          Effect.runPromise
        )

      await using service = await GatewayProcess.start({
        dataDir,
        command: [...node, program],
        main: "serve"
      })
      // The same process, restarted with the flags of the image (ADR 0233)
      const words = readFileSync(`/proc/${service.pid}/cmdline`, "utf8").split("\0")
      assert.includeMembers(words, [...heapFlags])
      env.GATEWAY_URL = service.url
      env.BASE_URL = service.url
      env.GATEWAY_API_KEY = await service.key()

      const listening = start("listen", "--forward", "http://127.0.0.1:9/", "--json")
      await until(() => listening.ran.out.includes("whsec_"))
      // Its reader is gone before there is an event
      const piped = start("listen", "--forward", "http://127.0.0.1:9/", "--json")
      await until(() => piped.ran.out.includes("whsec_"))
      piped.child.stdout.destroy()
      const run = await gateway("run", "text-to-image-max", "A pier", "--out", folder, "--json")
      assert.strictEqual(run.code, 0, run.error)
      assert.match(run.error, /^$/u)
      const made = JSON.parse(run.out)
      await until(() => listening.ran.out.includes("task.succeeded"))
      assert.strictEqual(await piped.ended, 141)
      assert.strictEqual(piped.ran.error, "")
      listening.child.kill("SIGINT")
      assert.strictEqual(await listening.ended, 130)

      // The disk for the output is full
      const full = openSync("/dev/full", "w")
      const unwritten = spawn(node[0]!, [...node.slice(1), program, "models", "list"], {
        env,
        stdio: ["ignore", full, "pipe"]
      })
      killAtExit(unwritten)
      let said = ""
      unwritten.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()))
      const code = await new Promise((resolve) => unwritten.once("close", resolve))
      closeSync(full)
      assert.strictEqual(code, 1)
      assert.match(said, /^Error: The output cannot be written \(ENOSPC.*\n$/u)

      const held = await here("backup", join(folder, "a.tar.gz"))
      assert.deepStrictEqual([held.code, held.out], [1, ""])
      assert.match(
        held.error,
        new RegExp(`in use by the process ${service.pid}[\\s\\S]*Stop the service`, "u")
      )
      const doctor = await here("doctor", "--json")
      assert.strictEqual(doctor.code, 0, doctor.out)
      const statuses = JSON.parse(doctor.out).findings.map(
        (it: { check: string; status: string }) => `${it.check} ${it.status}`
      )
      assert.includeMembers(statuses, ["configuration ok", "store ok", "service ok", "keys ok"])
      assert.notInclude(doctor.out, env.GATEWAY_API_KEY)

      const before = await seen(service, made.task.task_info.id)
      await service.kill("SIGTERM")
      assert.strictEqual(await service.ended, 0)
      assert.deepStrictEqual(JSON.parse((await gateway("migrate", "--json")).out).applied, [])
      const archive = join(folder, "backup.tar.gz")
      const backup = await gateway("backup", archive, "--json")
      assert.strictEqual(backup.code, 0, backup.error)
      assert.strictEqual(statSync(archive).mode & 0o777, 0o600)
      assert.strictEqual(JSON.parse(backup.out).with_media, true)
      assert.match((await here("backup", archive)).error, /is not overwritten/u)
      assert.match((await here("restore", archive)).error, /is not empty/u)

      rmSync(dataDir, { recursive: true })
      const cut = join(folder, "cut.tar.gz")
      copyFileSync(archive, cut)
      truncateSync(cut, statSync(archive).size - 1000)
      const refused = await here("restore", cut)
      assert.strictEqual(refused.code, 1)
      const rotten = join(folder, "rotten.tar.gz")
      writeFileSync(rotten, "no archive")
      assert.strictEqual((await here("restore", rotten)).code, 1)
      assert.notInclude(readdirSync(dataDir).join(), "postgres")
      const restored = await gateway("restore", archive, "--json")
      assert.strictEqual(restored.code, 0, restored.error)
      assert.deepStrictEqual(JSON.parse(restored.out).applied_migrations, [])

      await service.start()
      assert.deepStrictEqual(await seen(service, made.task.task_info.id), before)
      const [url = ""] = made.task.images
      const picture = new Uint8Array(await (await fetch(url)).arrayBuffer())
      assert.deepStrictEqual(picture, new Uint8Array(readFileSync(made.files[0])))
    }
  )
})

/** What a restore must bring back unchanged. */
const seen = async (service: GatewayProcess, id: string) => {
  const wallet = await service.call("GET", "/manage/v1/wallet")
  const task = await service.call("GET", `/manage/v1/tasks/${id}`)
  const entries = await service.call("GET", "/manage/v1/wallet/entries")
  const { inputs: _inputs, result: _result, ...rest } = task.json
  return { wallet: wallet.json, task: rest, entries: entries.json.data }
}
