import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, PlatformError, Redacted } from "effect"
import { AppConfig } from "../../../src/config/Config.ts"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"

/** The secrets that a start finds or creates in this folder. */
const startIn = (folder: string) =>
  Effect.scoped(Layer.build(Secrets.layer)).pipe(
    Effect.flatMap((context) => Effect.provide(Secrets, context)),
    Effect.provide(AppConfig.layerOf({ DATA_DIR: folder }))
  )

const folder = Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped())

describe("secrets that are generated into DATA_DIR", () => {
  it.effect("are readable only by their owner, and are the same at the next start", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const place = yield* folder
      const first = yield* startIn(place)
      const token = Redacted.value(Option.getOrThrow(first.generatedAdminToken))
      for (const name of ["admin-token", "master-key"]) {
        assert.strictEqual((yield* files.stat(`${place}/${name}`)).mode & 0o777, 0o600)
      }
      const second = yield* startIn(place)
      assert.isTrue(Option.isNone(second.generatedAdminToken))
      assert.isTrue(second.isAdminToken(token))
      assert.strictEqual(yield* second.decrypt(first.encrypt("kept")), "kept")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  for (const name of ["admin-token", "master-key"]) {
    for (const text of ["", "\n", "c2hvcnQ="]) {
      it.effect(`stop the start when ${name} holds ${JSON.stringify(text)}`, () =>
        Effect.gen(function* () {
          const files = yield* FileSystem.FileSystem
          const place = yield* folder
          yield* startIn(place)
          yield* files.writeFileString(`${place}/${name}`, text)
          const fault = yield* Effect.flip(startIn(place))
          assert.match(
            fault.message,
            new RegExp(`^DATA_DIR: ${place}/${name} is damaged; restore it from a backup`)
          )
          assert.strictEqual(yield* files.readFileString(`${place}/${name}`), text)
        }).pipe(Effect.provide(NodeServices.layer))
      )
    }
  }

  it.effect("are written completely or not at all: a full disk leaves no partial file", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const place = yield* folder
      const full = PlatformError.systemError({
        _tag: "Unknown",
        module: "FileSystem",
        method: "write",
        description: "no space left on device"
      })
      const onFullDisk = Effect.provideService(startIn(place), FileSystem.FileSystem, {
        ...files,
        writeFileString: (path, text, options) =>
          Effect.andThen(files.writeFileString(path, text.slice(0, 3), options), Effect.fail(full)),
        open: (path, options) =>
          Effect.map(files.open(path, options), (file) => ({
            ...file,
            writeAll: (bytes) =>
              Effect.andThen(file.writeAll(bytes.subarray(0, 3)), Effect.fail(full))
          }))
      })
      assert.match((yield* Effect.flip(onFullDisk)).message, /^DATA_DIR: .*no space left/)
      const later = yield* startIn(place)
      assert.isTrue(Option.isSome(later.generatedAdminToken))
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
