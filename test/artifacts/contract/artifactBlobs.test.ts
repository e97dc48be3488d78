import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import {
  DateTime,
  Effect,
  Fiber,
  FileSystem,
  Latch,
  Layer,
  Option,
  PlatformError,
  Redacted,
  Schedule,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import type { IncomingHttpHeaders, ServerResponse } from "node:http"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { inspect } from "node:util"
import S3rver from "s3rver"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import * as S3Blobs from "../../../src/artifacts/S3Blobs.ts"
import type { BucketAccess } from "../../../src/domain/Bucket.ts"
import { makeArtifactId } from "../../../src/domain/Ids.ts"
import type { FileId } from "../../../src/domain/Ids.ts"
import { fakeBucket } from "../../support/fakeBucket.ts"
import { localServer } from "../../support/localServer.ts"

/** One suite for the folder and for a bucket: docs/reference/configuration.md#artifact-store. */

const tempFolder = Effect.flatMap(FileSystem.FileSystem, (files) =>
  files.makeTempDirectoryScoped({ directory: tmpdir() })
)

/** A local server that speaks S3, with one bucket. */
const s3Server = Effect.gen(function* () {
  const directory = yield* tempFolder
  return yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const server = new S3rver({
        port: 0,
        address: "127.0.0.1",
        silent: true,
        directory,
        configureBuckets: [{ name: "media", configs: [] }]
      })
      const { port } = await server.run()
      return { server, url: `http://127.0.0.1:${port}` }
    }),
    ({ server }) => Effect.promise(() => server.close())
  )
})

/** Polls in real time; the test's clock advances only by `step`. */
const until = (is: () => boolean, step: Effect.Effect<void> = Effect.void) =>
  Effect.repeat(
    Effect.andThen(
      step,
      Effect.promise(() => pause(5))
    ),
    { until: is, times: 1000 }
  )

const bucketOptions = (endpoint: string): BucketAccess => ({
  bucket: "media",
  prefix: "some/prefix",
  region: "us-east-1",
  endpoint: Option.some(endpoint),
  accessKeyId: "S3RVER",
  secretAccessKey: Redacted.make("S3RVER"),
  sessionToken: Option.none()
})

const stores = {
  directory: Layer.unwrap(Effect.map(tempFolder, ArtifactBlobs.layerDirectory)),
  bucket: Layer.unwrap(Effect.map(s3Server, ({ url }) => S3Blobs.layer(bucketOptions(url))))
}

const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7 + (index >> 8)) & 255)

/** 20 MB in pieces of a socket's size: three parts of an upload. */
const large = Array.from({ length: 320 }, (_, index) => Buffer.alloc(64 * 1024 - index, index))

const read = Effect.fnUntraced(function* (
  id: ReturnType<typeof makeArtifactId>,
  start: number,
  end: number
) {
  const blobs = yield* ArtifactBlobs
  const found = yield* blobs.stream(id, { start, end })
  const pieces = yield* Stream.runCollect(Option.getOrThrow(found))
  return Buffer.concat([...pieces])
})

for (const [name, store] of Object.entries(stores)) {
  const provided = Effect.provide(store.pipe(Layer.provideMerge(NodeServices.layer)))
  describe(`ArtifactBlobs (${name})`, () => {
    it.effect("returns stored bytes, whole and in parts", () =>
      Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(1)
        yield* blobs.put(id, Stream.succeed(bytes), Effect.void)
        assert.deepStrictEqual(Option.getOrThrow(yield* blobs.get(id)), bytes)
        for (const [start, end] of [
          [0, bytes.length - 1],
          [0, 0],
          [bytes.length - 1, bytes.length - 1],
          [1000, 200_000]
        ] as const) {
          const part = yield* read(id, start, end)
          assert.isTrue(part.equals(bytes.subarray(start, end + 1)), `${start} to ${end}`)
        }
      }).pipe(provided)
    )
    it.effect("replaces a medium under the same id, and removes one, even twice", () =>
      Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(2)
        yield* blobs.put(id, Stream.succeed(bytes), Effect.void)
        yield* blobs.put(id, Stream.succeed(bytes.subarray(0, 10)), Effect.void)
        assert.strictEqual(Option.getOrThrow(yield* blobs.get(id)).length, 10)
        yield* blobs.remove(id)
        yield* blobs.remove(id)
        assert.isTrue(Option.isNone(yield* blobs.get(id)))
        assert.isTrue(Option.isNone(yield* blobs.stream(id, { start: 0, end: 0 })))
      }).pipe(provided)
    )
    it.effect(
      "accepts a medium in pieces of any size, also in several parts, and records it after its bytes are stored and before it can be read",
      () =>
        Effect.gen(function* () {
          const blobs = yield* ArtifactBlobs
          for (const pieces of [[bytes], large]) {
            const id = makeArtifactId(15)
            const all = Buffer.concat(pieces)
            let size = 0
            const counted = Stream.map(Stream.fromIterable<Uint8Array>(pieces), (piece) => {
              size += piece.length
              return piece
            })
            const record = Effect.map(blobs.get(id), (found) => ({ isThere: found._tag, size }))
            assert.deepStrictEqual(yield* blobs.put(id, counted, record), {
              isThere: "None",
              size: all.length
            })
            assert.isTrue(Buffer.from(Option.getOrThrow(yield* blobs.get(id))).equals(all))
            const part = yield* read(id, all.length - 70_000, all.length - 1)
            assert.isTrue(part.equals(all.subarray(all.length - 70_000)))
            yield* blobs.remove(id)
            const refused = blobs.put(id, Stream.fromIterable(pieces), Effect.fail("refused"))
            assert.strictEqual(yield* Effect.flip(refused), "refused")
            assert.isTrue(Option.isNone(yield* blobs.get(id)))
          }
        }).pipe(provided)
    )
    it.effect("does not store a medium that breaks off, and keeps the previous one", () =>
      Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(4)
        const broken = Stream.concat(Stream.fromIterable(large), Stream.fail("broken"))
        assert.strictEqual(yield* Effect.flip(blobs.put(id, broken, Effect.void)), "broken")
        assert.isTrue(Option.isNone(yield* blobs.get(id)))
        yield* blobs.put(id, Stream.succeed(bytes), Effect.void)
        assert.strictEqual(yield* Effect.flip(blobs.put(id, broken, Effect.void)), "broken")
        assert.deepStrictEqual(Option.getOrThrow(yield* blobs.get(id)), bytes)
      }).pipe(provided)
    )
  })
}

describe("S3Blobs, for a medium of several parts", () => {
  const bucket = Effect.acquireRelease(Effect.promise(fakeBucket), ({ close }) =>
    Effect.sync(close)
  )
  const whole = Buffer.concat(large)

  it.live("sends a part again that the bucket refuses temporarily", () =>
    Effect.gen(function* () {
      const { failures, objects, uploads, url } = yield* bucket
      const id = makeArtifactId(5)
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        failures.push("PUT", "POST")
        yield* blobs.put(id, Stream.fromIterable(large), Effect.void)
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      assert.isTrue(objects.get(`some/prefix/${id}`)?.equals(whole))
      assert.strictEqual(uploads.size, 0)
    })
  )

  it.live("aborts the upload when the medium breaks off or the copy is interrupted", () =>
    Effect.gen(function* () {
      const { objects, uploads, url } = yield* bucket
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        for (const end of [Stream.fail("broken"), Stream.never]) {
          const stream = Stream.concat(Stream.fromIterable(large), end)
          const copying = yield* Effect.forkChild(
            Effect.exit(blobs.put(makeArtifactId(6), stream, Effect.void))
          )
          if (end === Stream.never) {
            const begun = Effect.sync(() => uploads.size)
            yield* Effect.repeat(begun, { until: (it) => it > 0, schedule: Schedule.spaced(5) })
            yield* Fiber.interrupt(copying)
          }
          yield* Fiber.await(copying)
        }
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      assert.strictEqual(uploads.size, 0)
      assert.strictEqual(objects.size, 0)
    })
  )

  it.live("accepts a completed operation even if the response breaks off after its status", () =>
    Effect.gen(function* () {
      const { breaks, objects, url } = yield* bucket
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(7)
        breaks.push("PUT", "DELETE")
        yield* blobs.put(id, Stream.succeed(new Uint8Array([1, 2, 3])), Effect.void)
        assert.strictEqual(objects.size, 1)
        yield* blobs.remove(id)
        assert.strictEqual(objects.size, 0)
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      assert.deepStrictEqual(breaks, [])
    })
  )

  it.live("aborts the upload of a dead process at the start, but no recent upload", () =>
    Effect.gen(function* () {
      const { uploads, url } = yield* bucket
      const hoursAgo = new Date(Date.now() - 2 * 3_600_000)
      const parts = new Map<number, Buffer>()
      uploads.set("old", { key: "some/prefix/a", parts, initiated: hoursAgo })
      uploads.set("young", { key: "some/prefix/b", parts, initiated: new Date() })
      uploads.set("other", { key: "some/other", parts, initiated: hoursAgo })
      yield* Effect.provide(Effect.asVoid(ArtifactBlobs), S3Blobs.layer(bucketOptions(url)))
      assert.deepStrictEqual([...uploads.keys()], ["young", "other"])
    })
  )

  it.live("aborts an upload that was left for a day while the process runs", () =>
    Effect.gen(function* () {
      const { uploads, url } = yield* bucket
      const parts = new Map<number, Buffer>()
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        for (const hours of [23, 25]) {
          const initiated = new Date(Date.now() - hours * 3_600_000)
          uploads.set(`${hours} hours`, { key: `some/prefix/files/${hours}`, parts, initiated })
        }
        yield* blobs.removeOlder(DateTime.makeUnsafe(0), "files")
        assert.lengthOf([...uploads], 2)
        yield* blobs.removeOlder(DateTime.makeUnsafe(0))
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      assert.deepStrictEqual([...uploads.keys()], ["23 hours"])
    })
  )
})

describe("S3Blobs.layer", () => {
  const failure = (options: BucketAccess) =>
    Effect.flip(Effect.provide(Effect.asVoid(ArtifactBlobs), S3Blobs.layer(options))).pipe(
      Effect.map(({ message }) => message)
    )

  it.live("stops the start with the remedy if the bucket does not exist or cannot be reached", () =>
    Effect.gen(function* () {
      const { url } = yield* s3Server
      assert.strictEqual(
        yield* failure({ ...bucketOptions(url), bucket: "nothing" }),
        "ARTIFACT_STORE: the bucket nothing does not exist; create it, or name another"
      )
      const refusing = yield* localServer((_request, response) => response.writeHead(403).end())
      assert.strictEqual(
        yield* failure(bucketOptions(refusing)),
        "ARTIFACT_STORE: the bucket media answered 403; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the permissions to list, read, write and delete"
      )
      assert.strictEqual(
        yield* failure(bucketOptions("http://127.0.0.1:1")),
        "ARTIFACT_STORE: the bucket media cannot be reached; check AWS_ENDPOINT_URL and AWS_REGION"
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("the requests of S3Blobs", () => {
  it.live("are addressed by path, have the session's token, and request no checksum", () =>
    Effect.gen(function* () {
      const requests: Array<{ readonly path: string; readonly headers: IncomingHttpHeaders }> = []
      const url = yield* localServer((request, response) => {
        requests.push({ path: request.url ?? "", headers: request.headers })
        response.writeHead(request.method === "PUT" ? 200 : 404, { etag: '"1"' }).end()
      })
      const options = {
        ...bucketOptions(`${url}/base`),
        sessionToken: Option.some(Redacted.make("token"))
      }
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        yield* blobs.put(makeArtifactId(8), Stream.succeed(bytes), Effect.void)
      }).pipe(Effect.provide(S3Blobs.layer(options)))
      assert.lengthOf(requests, 3)
      for (const { headers, path } of requests) {
        assert.match(path, /^\/base\/media\//u)
        assert.strictEqual(headers["x-amz-security-token"], "token")
        assert.match(headers.authorization ?? "", /^AWS4-HMAC-SHA256 Credential=S3RVER\//u)
        const others = Object.keys(headers).filter((it) => /checksum|trailer|expect/u.test(it))
        assert.deepStrictEqual(others, [])
      }
    })
  )

  it.live("report the status and the code if they fail, but nothing that the bucket quotes", () =>
    Effect.gen(function* () {
      const url = yield* localServer((request, response) =>
        request.method === "GET"
          ? response.writeHead(404).end()
          : response
              .writeHead(403)
              .end(
                "<Error><Code>SignatureDoesNotMatch</Code><Message>quoted</Message>" +
                  "<AWSAccessKeyId>quoted</AWSAccessKeyId><StringToSign>quoted</StringToSign></Error>"
              )
      )
      const error = yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        return yield* Effect.flip(blobs.put(makeArtifactId(9), Stream.succeed(bytes), Effect.void))
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      assert.strictEqual(
        (error.cause as Error).message,
        "The artifact bucket responded with 403 (SignatureDoesNotMatch)"
      )
      assert.notInclude(inspect(error, { depth: null, showHidden: true }), "quoted")
    })
  )

  it.effect("end when the bucket sends nothing for 30 seconds in the middle of a medium", () =>
    Effect.gen(function* () {
      let closed = 0
      let sent = 0
      const url = yield* localServer((request, response) => {
        if (request.url?.includes("/art_") !== true) return response.writeHead(404).end()
        const range = /^bytes=(\d+)-(\d+)$/u.exec(request.headers.range ?? "")
        response.on("close", () => (closed += 1))
        response.writeHead(range === null ? 200 : 206, {
          "content-length": "10",
          ...(range === null ? {} : { "content-range": `bytes ${range[1]}-${range[2]}/10` })
        })
        return response.write("half", () => (sent += 1))
      })
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(16)
        const reads = [Effect.asVoid(blobs.get(id)), Effect.asVoid(read(id, 0, 9))]
        for (const [index, reading] of reads.entries()) {
          const fiber = yield* Effect.forkChild(Effect.flip(reading))
          yield* until(() => sent > index)
          yield* until(() => fiber.pollUnsafe() !== undefined, TestClock.adjust("10 seconds"))
          assert.isDefined(fiber.pollUnsafe(), "it waits forever")
          const error = yield* Fiber.join(fiber)
          assert.include(String(error.cause), "SilentBody")
          // The connection is given up rather than left to the bucket
          yield* until(() => closed > index)
        }
      }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
    })
  )

  it.live(
    "fail for the page of an intermediary or a missing bucket, which are not taken for a missing medium",
    () =>
      Effect.gen(function* () {
        let answer: (response: ServerResponse) => void = (response) => response.writeHead(404).end()
        const url = yield* localServer((_request, response) => answer(response))
        yield* Effect.gen(function* () {
          const blobs = yield* ArtifactBlobs
          const id = makeArtifactId(17)
          answer = (response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>")
          const { cause } = yield* Effect.flip(
            blobs.put(id, Stream.succeed(bytes.subarray(0, 10)), Effect.void)
          )
          assert.include(String(cause), "UnreadableResponse")
          answer = (response) =>
            response.writeHead(404).end("<Error><Code>NoSuchBucket</Code></Error>")
          assert.strictEqual((yield* Effect.flip(blobs.get(id)))._tag, "StoreUnavailable")
          assert.strictEqual((yield* Effect.flip(read(id, 0, 9)))._tag, "StoreUnavailable")
          assert.strictEqual((yield* Effect.flip(blobs.remove(id)))._tag, "RemovalRefused")
        }).pipe(Effect.provide(S3Blobs.layer(bucketOptions(url))))
      })
  )

  it.live("for a range return that range, even if the service returns the whole", () =>
    Effect.gen(function* () {
      const { objects, url } = yield* Effect.acquireRelease(
        Effect.promise(fakeBucket),
        ({ close }) => Effect.sync(close)
      )
      const id = makeArtifactId(10)
      objects.set(`some/prefix/${id}`, Buffer.from(bytes))
      const part = yield* Effect.provide(read(id, 10, 19), S3Blobs.layer(bucketOptions(url)))
      assert.isTrue(part.equals(bytes.subarray(10, 20)))
    })
  )
})

describe("ArtifactBlobs.layerDirectory", () => {
  it.live("stops the start with the remedy if the folder is not writable", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const file = join(folder, "file")
      writeFileSync(file, "")
      for (const directory of [file, join(file, "below"), "/proc/artifacts"]) {
        const error = yield* Effect.flip(
          Effect.provide(Effect.asVoid(ArtifactBlobs), ArtifactBlobs.layerDirectory(directory))
        )
        assert.match(
          error.message,
          /^ARTIFACT_STORE: the folder .* cannot be written to \(.+\); make it a folder/u
        )
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("fails with the system's reason if a medium cannot be written", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const id = makeArtifactId(8)
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        // The subfolder of the medium cannot be made
        writeFileSync(join(folder, id.slice(4, 11)), "")
        const { cause } = yield* Effect.flip(blobs.put(id, Stream.succeed(bytes), Effect.void))
        assert.match(String(cause), /ENOTDIR: not a directory/u)
      }).pipe(Effect.provide(ArtifactBlobs.layerDirectory(folder)))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("leaves nothing of a broken medium or of a dead process's", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const files = () =>
        readdirSync(folder, { recursive: true, withFileTypes: true }).filter((it) => it.isFile())
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(7)
        yield* Effect.exit(
          blobs.put(id, Stream.concat(Stream.succeed(bytes), Stream.fail("x")), Effect.void)
        )
        assert.deepStrictEqual(files(), [])
        writeFileSync(join(folder, id.slice(4, 11), `${id}.part`), "x")
        yield* blobs.remove(id)
        assert.deepStrictEqual(files(), [])
      }).pipe(Effect.provide(ArtifactBlobs.layerDirectory(folder)))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("removes the partial file of a killed process after an hour without a write", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const now = Date.now()
      const media = makeArtifactId(now)
      const file = `file-${media.slice(4)}` as FileId
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        for (const [of, id, parent] of [
          ["media", media, folder],
          ["files", file, join(folder, "files")]
        ] as const) {
          yield* blobs.put(id, Stream.succeed(bytes), Effect.void)
          const subfolder = join(
            parent,
            id.slice(id.indexOf(of === "media" ? "_" : "-") + 1).slice(0, 7)
          )
          const written = ["finished", "dead.part", "alive.part"].map((it) => join(subfolder, it))
          for (const path of written) writeFileSync(path, "x")
          const ago = (minutes: number) => new Date(now - minutes * 60_000)
          for (const path of [written[0]!, written[1]!]) utimesSync(path, ago(61), ago(61))
          utimesSync(written[2]!, ago(59), ago(59))
          yield* blobs.removeOlder(DateTime.makeUnsafe(now - 24 * 3_600_000), of)
          assert.deepStrictEqual(written.map(existsSync), [true, false, true], of)
          assert.isTrue(Option.isSome(yield* blobs.get(id)))
        }
      }).pipe(Effect.provide(ArtifactBlobs.layerDirectory(folder)))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("removes what a dead process left after a day, but nothing younger", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const day = 24 * 3_600_000
      const hour = 3_600_000
      const ids = [10 * day, 11 * day].map((millis) => makeArtifactId(millis))
      const files = ids.map((id) => join(folder, id.slice(4, 11), `${id}.part`))
      // Files that do not belong to the store: another file, and a subfolder with a shorter name
      const others = [join(folder, "abcdef0"), join(folder, "ab"), join(folder, "notes")]
      for (const it of [...files.map((file) => dirname(file)), others[1]!]) mkdirSync(it)
      for (const file of [...files, join(others[1]!, "art_ab"), others[2]!])
        writeFileSync(file, "x")
      mkdirSync(others[0]!)
      yield* Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const than = DateTime.makeUnsafe(11 * day - hour)
        yield* blobs.removeOlder(than)
      }).pipe(Effect.provide(ArtifactBlobs.layerDirectory(folder)))
      assert.deepStrictEqual(files.map(existsSync), [false, true])
      assert.isFalse(existsSync(dirname(files[0]!)))
      assert.deepStrictEqual(others.map(existsSync), [true, true, true])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("reports an old folder that cannot be removed, and removes the others", () =>
    Effect.gen(function* () {
      const folder = yield* tempFolder
      const day = 24 * 3_600_000
      const folders = [1, 2].map((days) => join(folder, makeArtifactId(days * day).slice(4, 11)))
      for (const it of folders) mkdirSync(it)
      const refused = PlatformError.systemError({
        _tag: "PermissionDenied",
        module: "FileSystem",
        method: "remove"
      })
      const files = Effect.map(FileSystem.FileSystem, (fs) =>
        FileSystem.FileSystem.of({
          ...fs,
          remove: (path, options) =>
            path === folders[0] ? Effect.fail(refused) : fs.remove(path, options)
        })
      )
      const error = yield* Effect.flatMap(ArtifactBlobs, ({ removeOlder }) =>
        Effect.flip(removeOlder(DateTime.makeUnsafe(10 * day)))
      ).pipe(
        Effect.provide(ArtifactBlobs.layerDirectory(folder)),
        Effect.provideServiceEffect(FileSystem.FileSystem, files)
      )
      assert.strictEqual(error.cause, refused)
      assert.deepStrictEqual(folders.map(existsSync), [true, false])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

/** A file system that records what makes files durable, and may fail with a given error code. */
const observedDisk = (steps: Array<string>, failing?: (step: string) => boolean, code = "EIO") =>
  Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => {
      const note = <A>(step: string, work: Effect.Effect<A, PlatformError.PlatformError>) =>
        Effect.suspend(() => {
          steps.push(step)
          return failing?.(step) === true
            ? Effect.fail(
                PlatformError.systemError({
                  _tag: "Unknown",
                  module: "FileSystem",
                  method: "sync",
                  cause: Object.assign(new Error(code), { code })
                })
              )
            : work
        })
      return FileSystem.FileSystem.of({
        ...fs,
        makeDirectory: (path, options) => note("make folder", fs.makeDirectory(path, options)),
        rename: (from, to) => note("rename", fs.rename(from, to)),
        open: (path, options) =>
          Effect.map(fs.open(path, options), (file) => {
            const name = basename(path)
            const kind = name.endsWith(".part")
              ? "file"
              : name.length === 7
                ? "folder"
                : "directory"
            return Object.create(file, {
              sync: { value: note(`sync ${kind}`, file.sync) },
              writeAll: {
                value: (chunk: Uint8Array) => note("write", file.writeAll(chunk))
              }
            }) as FileSystem.File
          })
      })
    })
  ).pipe(Layer.provide(NodeServices.layer))

describe("ArtifactBlobs.layerDirectory, after a power cut", () => {
  const onDisk = Effect.fnUntraced(function* <A, E>(
    disk: Layer.Layer<FileSystem.FileSystem>,
    work: (blobs: ArtifactBlobs["Service"]) => Effect.Effect<A, E>
  ) {
    const folder = yield* tempFolder
    return yield* Effect.flatMap(ArtifactBlobs, work).pipe(
      Effect.provide(
        ArtifactBlobs.layerDirectory(folder).pipe(
          Layer.provide(Layer.provideMerge(disk, NodeServices.layer))
        )
      )
    )
  })

  it.live(
    "has the bytes of all that it recorded, because file, name and folder are synced in that order",
    () =>
      Effect.gen(function* () {
        const steps: Array<string> = []
        const record = Effect.sync(() => void steps.push("record"))
        yield* onDisk(observedDisk(steps), (blobs) =>
          Effect.gen(function* () {
            yield* blobs.put(makeArtifactId(12), Stream.succeed(bytes), record)
            const first = ["make folder", "write", "sync file", "record", "rename"]
            assert.deepStrictEqual(steps.splice(0), [...first, "sync folder", "sync directory"])
            yield* blobs.put(makeArtifactId(13), Stream.succeed(bytes), record)
            const next = ["write", "sync file", "record", "rename", "sync folder"]
            assert.deepStrictEqual(steps, next)
          })
        )
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("needs few syncs of the folder for media that are stored together", () =>
    Effect.gen(function* () {
      const steps: Array<string> = []
      const count = 64
      const arrived = yield* Latch.make()
      let waiting = 0
      // All of them are at the same point
      const record = Effect.suspend(() => {
        waiting += 1
        return waiting === count ? arrived.open : arrived.await
      })
      yield* onDisk(observedDisk(steps), (blobs) =>
        Effect.forEach(
          Array.from({ length: count }),
          (_, n) => blobs.put(makeArtifactId(n), Stream.succeed(bytes), record),
          { concurrency: "unbounded" }
        )
      )
      const of = (step: string) => steps.filter((it) => it === step).length
      assert.strictEqual(of("rename"), count)
      assert.isBelow(of("sync folder"), count / 4)
      assert.strictEqual(of("sync directory"), 1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("also stores media on a file system that cannot sync folders", () =>
    Effect.gen(function* () {
      const isFolder = (step: string) => step === "sync folder" || step === "sync directory"
      for (const code of ["EINVAL", "ENOTSUP", "EBADF", "EISDIR", "EPERM"]) {
        const steps: Array<string> = []
        yield* onDisk(observedDisk(steps, isFolder, code), (blobs) =>
          Effect.gen(function* () {
            const id = makeArtifactId(16)
            yield* blobs.put(id, Stream.succeed(bytes), Effect.void)
            assert.isTrue(Option.isSome(yield* blobs.get(id)), code)
          })
        )
        assert.include(steps, "sync file", code)
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  for (const step of ["write", "sync file", "rename", "sync folder", "sync directory"]) {
    it.live(`fails the put if the disk fails at "${step}"`, () =>
      Effect.gen(function* () {
        const steps: Array<string> = []
        const failing = observedDisk(steps, (it) => it === step)
        const error = yield* onDisk(failing, (blobs) =>
          Effect.flip(blobs.put(makeArtifactId(14), Stream.succeed(bytes), Effect.void))
        )
        assert.strictEqual(error._tag, "StoreUnavailable")
        assert.strictEqual(steps.at(-1), step)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  }
})
