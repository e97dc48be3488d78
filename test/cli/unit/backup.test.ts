import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { randomBytes } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { writeArchive } from "../../../src/cli/backup/Archive.ts"
import { openEmbedded } from "../../../src/db/EmbeddedPostgres.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { prepareDataDir } from "../../support/stores.ts"
import { pause, until } from "../../support/until.ts"

/** docs/operating.md#backup, ADR 0221. What a process does with it: commandProcesses.test.ts */

const folderIn = (parent: string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(parent, "gateway backup-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

/** Another file system, if the machine has one. */
const otherFileSystem = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

/** The folders of a stopped service, with a medium in a separate folder, and a target. */
const stoppedWith = Effect.fnUntraced(function* (putStore: (dataDir: string) => Promise<void>) {
  const folder = yield* folderIn(tmpdir())
  const env = {
    DATA_DIR: join(folder, "data"),
    ARTIFACT_STORE: join(folder, "media"),
    BASE_URL: "http://localhost:8080"
  }
  yield* Effect.promise(() => putStore(env.DATA_DIR))
  writeFileSync(join(env.DATA_DIR, "master-key"), "a secret\n", { mode: 0o600 })
  mkdirSync(join(env.ARTIFACT_STORE, "a b"), { recursive: true })
  writeFileSync(join(env.ARTIFACT_STORE, "a b", "medium"), "bytes")
  yield* withEnvironment(env)
  return { folder, archive: join(folder, "a backup.tar.gz"), ...env }
})

const stopped = stoppedWith(prepareDataDir)

/** With one file instead of a store, for tests that end before the store is opened. */
const stoppedSmall = stoppedWith(async (dataDir) => {
  await mkdir(join(dataDir, "postgres"), { recursive: true })
  await writeFile(join(dataDir, "postgres", "a table"), randomBytes(1024 * 1024))
})

const done = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const ran = yield* runCommand(args)
  assert.strictEqual(ran.code, 0, ran.error)
})

describe("gateway backup and restore", () => {
  it.live("put media on another file system than the store, without access for others", () =>
    Effect.gen(function* () {
      const { archive, folder } = yield* stopped
      yield* done("backup", archive)
      const target = {
        DATA_DIR: join(folder, "restored"),
        ARTIFACT_STORE: join(yield* folderIn(otherFileSystem), "media")
      }
      yield* withEnvironment(target)
      yield* done("restore", archive)
      assert.strictEqual(
        readFileSync(join(target.ARTIFACT_STORE, "a b", "medium"), "utf8"),
        "bytes"
      )
      assert.deepStrictEqual(readdirSync(target.ARTIFACT_STORE), ["a b"])
      assert.deepStrictEqual(readdirSync(target.DATA_DIR).toSorted(), [
        "lock.sqlite",
        "master-key",
        "postgres"
      ])
      assert.deepStrictEqual(
        [target.DATA_DIR, target.ARTIFACT_STORE, join(target.DATA_DIR, "master-key")].map(modeOf),
        ["700", "700", "600"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("ask the operator to stop the service only if it runs", () =>
    Effect.gen(function* () {
      const { archive, folder } = yield* stoppedSmall
      yield* done("backup", archive)
      const target = { DATA_DIR: "/proc/data", ARTIFACT_STORE: join(folder, "restored media") }
      yield* withEnvironment(target)
      const ran = yield* runCommand(["restore", archive])
      assert.strictEqual(ran.code, 1)
      assert.match(ran.error, /^Error: DATA_DIR: the folder \/proc\/data cannot be locked/u)
      assert.notInclude(ran.error, "Stop the service")
    }).pipe(Effect.scoped)
  )

  it.live("name an archive that is truncated at any point, and write nothing from it", () =>
    Effect.gen(function* () {
      const { archive, folder } = yield* stoppedSmall
      yield* done("backup", archive)
      const whole = readFileSync(archive)
      const unpacked = gunzipSync(whole)
      const cut = join(folder, "cut.tar.gz")
      const target = {
        DATA_DIR: join(folder, "restored"),
        ARTIFACT_STORE: join(folder, "restored media")
      }
      yield* withEnvironment(target)
      const parts = [
        whole.subarray(0, 5),
        whole.subarray(0, whole.length / 3),
        whole.subarray(0, whole.length - 1),
        // Compressed again: the gzip stream is complete but the archive is not
        gzipSync(unpacked.subarray(0, unpacked.length / 3), { level: 1 }),
        gzipSync(unpacked.subarray(0, unpacked.lastIndexOf("manifest.json")), { level: 1 })
      ]
      for (const part of parts) {
        writeFileSync(cut, part)
        const { code, error } = yield* runCommand(["restore", cut])
        assert.strictEqual(code, 1)
        assert.include(error, `Error: ${cut} is truncated`, String(part.length))
        assert.include(error, "Remedy: Copy the whole file again")
        assert.deepStrictEqual(readdirSync(target.DATA_DIR), ["lock.sqlite"])
        assert.isFalse(existsSync(target.ARTIFACT_STORE))
      }
      const middle = whole.length >> 1
      // Damaged contents, and a damaged checksum at the end of the stream
      for (const [from, to] of [
        [middle, middle + 1000],
        [whole.length - 8, whole.length - 4]
      ] as const) {
        writeFileSync(cut, Buffer.from(whole).fill(7, from, to))
        assert.include((yield* runCommand(["restore", cut])).error, `${cut} is damaged`)
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuse an archive without a store, and create no store", () =>
    Effect.gen(function* () {
      const { archive, folder } = yield* stoppedSmall
      yield* done("backup", archive)
      const target = { DATA_DIR: join(folder, "restored"), ARTIFACT_STORE: join(folder, "others") }
      yield* withEnvironment(target)
      const { code, error } = yield* runCommand(["restore", archive])
      assert.strictEqual(code, 1)
      assert.include(error, `${archive} contains no store`)
      assert.deepStrictEqual(readdirSync(target.DATA_DIR), ["lock.sqlite"])
    }).pipe(Effect.scoped)
  )

  it.live("ignore lost+found, and remove what a killed run left behind", () =>
    Effect.gen(function* () {
      const { archive, folder, ...source } = yield* stopped
      mkdirSync(join(source.DATA_DIR, "lost+found", "of the disk"), { recursive: true })
      // Left there by an earlier version
      writeFileSync(`${archive}.part`, "cut off")
      yield* done("backup", archive)
      const DATA_DIR = join(folder, "restored")
      const left = join(DATA_DIR, ".restore-killed")
      mkdirSync(left, { recursive: true })
      mkdirSync(join(DATA_DIR, "lost+found"))
      writeFileSync(join(left, "master-key"), "a secret\n")
      yield* withEnvironment({ DATA_DIR, ARTIFACT_STORE: join(DATA_DIR, "artifacts") })
      yield* done("restore", archive)
      assert.deepStrictEqual(readdirSync(DATA_DIR).toSorted(), [
        "artifacts",
        "lock.sqlite",
        "lost+found",
        "master-key",
        "postgres"
      ])
      assert.deepStrictEqual(readdirSync(join(DATA_DIR, "lost+found")), [])
    }).pipe(Effect.scoped)
  )

  it.live(
    "report a restore that was interrupted between its moves",
    () =>
      Effect.gen(function* () {
        const { ARTIFACT_STORE, DATA_DIR, archive, folder } = yield* stopped
        mkdirSync(join(ARTIFACT_STORE, "lost+found"))
        writeFileSync(join(ARTIFACT_STORE, "lost+found", "medium"), "bytes")
        yield* writeArchive(
          archive,
          [
            { name: "data", folder: DATA_DIR, isLeftOut: (it) => it.startsWith("lock") },
            { name: "artifacts", folder: ARTIFACT_STORE, isLeftOut: () => false }
          ],
          { format: 1, created_at: "2026-01-01T00:00:00Z", version: "0.2.0" }
        )
        const target = { DATA_DIR: join(folder, "restored"), ARTIFACT_STORE: join(folder, "full") }
        // It blocks a move, as after a kill
        mkdirSync(join(target.ARTIFACT_STORE, "lost+found", "of the disk"), { recursive: true })
        yield* withEnvironment(target)
        assert.include((yield* runCommand(["restore", archive])).error, "not empty")
        const told = `a restore was interrupted: ${target.DATA_DIR} and ${target.ARTIFACT_STORE} contain part of a backup`
        assert.include((yield* runCommand(["restore", archive])).error, told)
        const doctor = yield* runCommand(["doctor"], { GATEWAY_URL: "http://127.0.0.1:9" })
        assert.strictEqual(doctor.code, 1)
        assert.include(doctor.out, `XX  store          DATA_DIR: ${told}`)
        const opened = openEmbedded({ dataDir: target.DATA_DIR, durable: false })
        assert.strictEqual((yield* Effect.flip(opened)).fault, told)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live("read media one after another, however many there are", () =>
    Effect.gen(function* () {
      const { ARTIFACT_STORE, archive } = yield* stoppedSmall
      for (let i = 0; i < 1000; i += 1) writeFileSync(join(ARTIFACT_STORE, `medium-${i}`), "bytes")
      const openFiles = () => readdirSync("/proc/self/fd").length
      const before = openFiles()
      const backup = yield* Effect.forkChild(done("backup", archive))
      let most = before
      while (backup.pollUnsafe() === undefined) {
        most = Math.max(most, openFiles())
        yield* Effect.promise(() => pause(1))
      }
      yield* Fiber.join(backup)
      assert.isBelow(most - before, 100)
    }).pipe(Effect.scoped)
  )

  it.live("leave no file behind when they are interrupted", () =>
    Effect.gen(function* () {
      const { archive, folder } = yield* stopped
      const backup = yield* Effect.forkChild(runCommand(["backup", archive]))
      yield* Effect.promise(() =>
        until(async () => readdirSync(folder).find((it) => it.endsWith(".part")))
      )
      yield* Fiber.interrupt(backup)
      assert.deepStrictEqual(readdirSync(folder).toSorted(), ["data", "media"])
    }).pipe(Effect.scoped)
  )

  it.live("say what is wrong with a folder that cannot be read", () =>
    Effect.gen(function* () {
      const folder = yield* folderIn(tmpdir())
      const [loop, file] = [join(folder, "loop"), join(folder, "file")]
      symlinkSync(loop, loop)
      writeFileSync(file, "")
      for (const [args, dataDir, reason] of [
        [["backup", join(folder, "a.tar.gz")], loop, "ELOOP"],
        [["restore", file], file, "ENOTDIR"]
      ] as const) {
        yield* withEnvironment({ DATA_DIR: dataDir, BASE_URL: "http://localhost:8080" })
        const { code, error } = yield* runCommand(args)
        assert.strictEqual(code, 1)
        assert.include(error, reason)
        assert.match(error, /that this user may (?:read and )?write to/u)
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuse to write a backup into a folder that does not exist", () =>
    Effect.gen(function* () {
      yield* stoppedSmall
      const folder = join(yield* folderIn(tmpdir()), "missing")
      const { code, error } = yield* runCommand(["backup", join(folder, "backup.tar.gz")])
      assert.strictEqual(code, 1)
      assert.include(error, `The folder ${folder} does not exist`)
      assert.include(error, "Create it, or name a file in another folder")
    }).pipe(Effect.scoped)
  )

  it.live("refuse to write a backup among the media", () =>
    Effect.gen(function* () {
      const { ARTIFACT_STORE } = yield* stoppedSmall
      const { code, error } = yield* runCommand(["backup", join(ARTIFACT_STORE, "backup.tar.gz")])
      assert.strictEqual(code, 1)
      assert.include(error, "is in ARTIFACT_STORE")
    }).pipe(Effect.scoped)
  )
})
