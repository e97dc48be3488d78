import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, Redacted, Stream } from "effect"
import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import S3rver from "s3rver"
import { makeArtifactId } from "../../src/domain/Ids.ts"
import { ArtifactBlobs } from "../../src/store/ArtifactBlobs.ts"
import * as S3Blobs from "../../src/store/S3Blobs.ts"

/** One suite for the directory and for a bucket. Contract 9, `ARTIFACT_STORE`. */

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

const bucketOptions = (endpoint: string): S3Blobs.S3Options => ({
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
    it.effect("gives back what was put, whole and in parts", () =>
      Effect.gen(function* () {
        const blobs = yield* ArtifactBlobs
        const id = makeArtifactId(1)
        yield* blobs.put(id, bytes)
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
    it.effect(
      "the same id again replaces it; what is removed is gone, and may be removed again",
      () =>
        Effect.gen(function* () {
          const blobs = yield* ArtifactBlobs
          const id = makeArtifactId(2)
          yield* blobs.put(id, bytes)
          yield* blobs.put(id, bytes.subarray(0, 10))
          assert.strictEqual(Option.getOrThrow(yield* blobs.get(id)).length, 10)
          yield* blobs.remove(id)
          yield* blobs.remove(id)
          assert.isTrue(Option.isNone(yield* blobs.get(id)))
          assert.isTrue(Option.isNone(yield* blobs.stream(id, { start: 0, end: 0 })))
        }).pipe(provided)
    )
  })
}

describe("S3Blobs.layer", () => {
  const failure = (options: S3Blobs.S3Options) =>
    Effect.flip(Effect.provide(Effect.asVoid(ArtifactBlobs), S3Blobs.layer(options))).pipe(
      Effect.map(({ message }) => message)
    )

  it.live(
    "a bucket that does not exist, or cannot be reached, stops the start with the remedy",
    () =>
      Effect.gen(function* () {
        const { url } = yield* s3Server
        assert.strictEqual(
          yield* failure({ ...bucketOptions(url), bucket: "nothing" }),
          "ARTIFACT_STORE: the bucket nothing does not exist; create it, or name another"
        )
        const refusing = yield* Effect.acquireRelease(
          Effect.promise(
            () =>
              new Promise<Server>((resolve) => {
                const server = createServer((_request, response) => response.writeHead(403).end())
                server.listen(0, "127.0.0.1", () => resolve(server))
              })
          ),
          (server) => Effect.sync(() => server.close())
        )
        const { port } = refusing.address() as AddressInfo
        assert.strictEqual(
          yield* failure(bucketOptions(`http://127.0.0.1:${port}`)),
          "ARTIFACT_STORE: the bucket media answered 403; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the right to list, read, write and delete"
        )
        assert.strictEqual(
          yield* failure(bucketOptions("http://127.0.0.1:1")),
          "ARTIFACT_STORE: the bucket media cannot be reached; check AWS_ENDPOINT_URL and AWS_REGION"
        )
      }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("ArtifactBlobs.layerDirectory", () => {
  it.live(
    "what a dead process left half written is removed at the start, younger files are not",
    () =>
      Effect.gen(function* () {
        const folder = yield* tempFolder
        mkdirSync(join(folder, "ab"))
        const [old, young] = [join(folder, "ab", "old.part"), join(folder, "ab", "young.part")]
        writeFileSync(old, "x")
        writeFileSync(young, "x")
        const hoursAgo = new Date(Date.now() - 2 * 3_600_000)
        utimesSync(old, hoursAgo, hoursAgo)
        yield* Effect.provide(Effect.asVoid(ArtifactBlobs), ArtifactBlobs.layerDirectory(folder))
        assert.isFalse(existsSync(old))
        assert.isTrue(existsSync(young))
      }).pipe(Effect.provide(NodeServices.layer))
  )
})
