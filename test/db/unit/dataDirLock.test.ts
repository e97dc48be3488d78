import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { spawn } from "node:child_process"
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { lockDataDir } from "../../../src/db/DataDirLock.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

const folder = Effect.sync(() => temporaryFolder("lock"))

const child = (path: string, runtime: ReadonlyArray<string> = [process.execPath]) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const module = new URL("../../../src/db/DataDirLock.ts", import.meta.url).href
      const code = `const { Effect } = await import("effect")
        const { lockDataDir } = await import(${JSON.stringify(module)})
        const alive = setInterval(() => {}, 60_000)
        await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
          yield* lockDataDir(${JSON.stringify(path)})
          console.log("locked")
          yield* Effect.never
        })).pipe(Effect.catch((error) => Effect.sync(() => console.log(error.message)))))
        clearInterval(alive)`
      const [command = "", ...args] = runtime
      const eval_ = args.length > 0 ? ["eval", code] : ["--input-type=module", "-e", code]
      const process_ = spawn(command, eval_, {
        cwd: new URL("../../../", import.meta.url),
        stdio: ["ignore", "pipe", "pipe"]
      })
      let warnings = ""
      process_.stderr.on("data", (data) => (warnings += String(data)))
      const line = await new Promise<string>((resolve) =>
        process_.stdout.once("data", (data) => resolve(String(data).trim()))
      )
      const exited = new Promise((resolve) => process_.once("exit", resolve))
      const kill = async () => {
        process_.kill("SIGKILL")
        await exited
      }
      const stop = () => process_.kill("SIGSTOP")
      return { pid: process_.pid, line, kill, stop, warnings: () => warnings }
    }),
    (child) => Effect.promise(child.kill)
  )

const deno = new URL("../../../node_modules/.bin/deno", import.meta.url).pathname

describe("the lock of the data folder", () => {
  for (const [name, runtime] of [
    ["node", [process.execPath]],
    ["deno", [deno, "deno"]]
  ] as const) {
    it.live(`refuses a second process by its pid, and can be taken after kill -9 (${name})`, () =>
      Effect.gen(function* () {
        const path = yield* folder
        const first = yield* child(path, runtime)
        assert.strictEqual(first.line, "locked")
        const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
        assert.include(error.message, `in use by the process ${first.pid}`)
        assert.match(error.message, /^DATA_DIR: the folder .* Stop that process/)
        yield* Effect.promise(first.kill)
        yield* Effect.scoped(lockDataDir(path))
        assert.deepStrictEqual(readdirSync(path), ["lock.sqlite"])
        assert.strictEqual(statSync(join(path, "lock.sqlite")).size, 0)
        assert.strictEqual(first.warnings(), "")
      })
    )
  }

  it.live("is held until the scope closes", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "deep", "down")
      const scope = yield* Scope.make()
      yield* Scope.provide(lockDataDir(path), scope)
      assert.strictEqual(holder(path), process.pid)
      const second = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.include(second.message, `in use by the process ${process.pid}`)
      assert.strictEqual((yield* child(path)).line, second.message)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.scoped(lockDataDir(path))
    })
  )

  it.live("is held by a stopped process", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* child(path)
      first.stop()
      const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.include(error.message, `in use by the process ${first.pid}`)
      yield* Effect.promise(first.kill)
      yield* Effect.scoped(lockDataDir(path))
    })
  )

  const holder = (path: string) => Number(readFileSync(join(path, "gateway.pid"), "utf8"))
  const store = (path: string, pid: number) => writeFileSync(join(path, "gateway.pid"), `${pid}\n`)

  it.live("is not held by a pid that another program uses", () =>
    Effect.gen(function* () {
      const path = yield* folder
      store(path, process.ppid)
      yield* lockDataDir(path)
      assert.strictEqual(holder(path), process.pid)
    })
  )

  it.live("is taken by one of eight that find it stale at once", () =>
    Effect.gen(function* () {
      const path = yield* folder
      yield* Effect.promise((yield* child(path)).kill)
      const exits = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.exit(lockDataDir(path))),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(exits.filter(Exit.isSuccess), 1)
      assert.deepStrictEqual(readdirSync(path), ["gateway.pid", "lock.sqlite"])
    })
  )

  it.live("is taken by one of three processes that start at once", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const starts = yield* Effect.all([child(path), child(path), child(path)], {
        concurrency: "unbounded"
      })
      assert.lengthOf(
        starts.filter(({ line }) => line === "locked"),
        1
      )
    })
  )

  it.live("is held for another container only while its process lives", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const first = yield* child(path)
      // Its pid there belongs to a different process here
      store(path, 1)
      const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.include(error.message, "in use by the process 1")
      yield* Effect.promise(first.kill)
      yield* lockDataDir(path)
      assert.strictEqual(holder(path), process.pid)
    })
  )

  it.live("names the variable and the remedy if the folder is not writable", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "file")
      writeFileSync(path, "")
      const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.match(error.message, /^DATA_DIR: .*cannot be locked.*Make it a folder/)
    })
  )
})
