import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { spawn } from "node:child_process"
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { lockDataDir } from "../../../src/db/DataDirLock.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "lock-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const child = (path: string, runtime: ReadonlyArray<string> = [process.execPath]) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const module = new URL("../../../src/db/DataDirLock.ts", import.meta.url).href
      const code = `const { Effect } = await import("effect")
        const { lockDataDir } = await import(${JSON.stringify(module)})
        await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
          yield* lockDataDir(${JSON.stringify(path)})
          console.log("locked")
          yield* Effect.never
        })).pipe(Effect.catch((error) => Effect.sync(() => console.log(error.message)))))`
      const [command = "", ...args] = runtime
      const eval_ = args.length > 0 ? ["eval", code] : ["--input-type=module", "-e", code]
      const process_ = spawn(command, eval_, {
        cwd: new URL("../../../", import.meta.url),
        stdio: ["ignore", "pipe", "inherit"]
      })
      const line = await new Promise<string>((resolve) =>
        process_.stdout.once("data", (data) => resolve(String(data).trim()))
      )
      const exited = new Promise((resolve) => process_.once("exit", resolve))
      const kill = async () => {
        process_.kill("SIGKILL")
        await exited
      }
      return { pid: process_.pid, line, kill }
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
        assert.deepStrictEqual(readdirSync(path), [])
      })
    )
  }

  it.live("is held until the scope closes", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "deep", "down")
      const scope = yield* Scope.make()
      yield* Scope.provide(lockDataDir(path), scope)
      assert.isTrue(existsSync(join(path, "gateway.lock")))
      const second = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.include(second.message, `in use by the process ${process.pid}`)
      yield* Scope.close(scope, Exit.void)
      yield* Effect.scoped(lockDataDir(path))
    })
  )

  const stored = (path: string) => JSON.parse(readFileSync(join(path, "gateway.lock"), "utf8"))
  const store = (path: string, holder: unknown) =>
    writeFileSync(
      join(path, "gateway.lock"),
      typeof holder === "string" ? holder : JSON.stringify(holder)
    )

  /** The content of a lock of this process. */
  const own = Effect.scoped(
    Effect.gen(function* () {
      const path = yield* folder
      yield* lockDataDir(path)
      return stored(path)
    })
  )

  it.live("a pid that is used by another program does not hold the lock", () =>
    Effect.gen(function* () {
      const path = yield* folder
      store(path, { ...(yield* own), started: "1", nonce: "before" })
      yield* lockDataDir(path)
      assert.strictEqual(stored(path).pid, process.pid)
      assert.notStrictEqual(stored(path).nonce, "before")
    })
  )

  it.live("of eight that find a stale lock at once one takes it", () =>
    Effect.gen(function* () {
      const path = yield* folder
      store(path, { ...(yield* own), started: "1" })
      const exits = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.exit(lockDataDir(path))),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(exits.filter(Exit.isSuccess), 1)
      assert.deepStrictEqual(readdirSync(path), ["gateway.lock"])
    })
  )

  it.live(
    "a lock of another container counts while its heartbeat is fresh, and not after",
    () =>
      Effect.gen(function* () {
        const path = yield* folder
        store(path, { ...(yield* own), place: "elsewhere", pid: 1 })
        const beating = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => utimesSync(join(path, "gateway.lock"), new Date(), new Date())),
              Effect.sleep("300 millis")
            )
          )
        )
        const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
        assert.include(error.message, "in use by the process 1")
        yield* Fiber.interrupt(beating)
        yield* lockDataDir(path)
        assert.strictEqual(stored(path).pid, process.pid)
      }),
    30_000
  )

  it.live("a folder that is not writable names the variable and the remedy", () =>
    Effect.gen(function* () {
      const path = join(yield* folder, "file")
      writeFileSync(path, "")
      const error = yield* Effect.flip(Effect.scoped(lockDataDir(path)))
      assert.match(error.message, /^DATA_DIR: .*cannot be locked.*Make it a folder/)
    })
  )
})
