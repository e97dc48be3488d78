import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, Redacted, Result, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { setTimeout as pause } from "node:timers/promises"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import { Files } from "../../../src/artifacts/files/Files.ts"
import { FileStore } from "../../../src/artifacts/files/FileStore.ts"
import type { FileQuota, FileRow } from "../../../src/artifacts/files/FileStore.ts"
import * as S3Blobs from "../../../src/artifacts/S3Blobs.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import type { Database } from "../../../src/db/Database.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { fakeBucket } from "../../support/fakeBucket.ts"
import { describeStores, embeddedDatabase } from "../../support/stores.ts"

/** docs/reference/files.md */

const user = UserId.make("00000000-0000-7000-8000-0000000000a1")
const other = UserId.make("00000000-0000-7000-8000-0000000000a2")

const addUsers = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO users (id, email, created_at)
    SELECT u::uuid, u || '@example.com', to_timestamp(0) FROM unnest(${[user, other]}::text[]) u`
})

const upload = (text: string, userId = user) =>
  Effect.flatMap(Files, (files) =>
    files.upload(userId, Stream.succeed(Buffer.from(text)), Effect.succeed({ filename: "a.jsonl" }))
  )

const readAll = (file: { readonly id: never; readonly bytes: bigint }) =>
  Effect.flatMap(Files, (files) => Effect.flatMap(files.open(file), Stream.runCollect))

const page = { after: undefined, limit: 10, isAscending: true, purpose: undefined }

const directory = Layer.unwrap(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    return ArtifactBlobs.layerDirectory(yield* fs.makeTempDirectoryScoped())
  })
)

/** A bucket that refuses the first removal temporarily. */
const bucket = Layer.unwrap(
  Effect.map(
    Effect.acquireRelease(Effect.promise(fakeBucket), ({ close }) => Effect.sync(close)),
    ({ failures, url }) => {
      failures.push("DELETE")
      return S3Blobs.layer({
        bucket: "media",
        prefix: "",
        region: "us-east-1",
        endpoint: Option.some(url),
        accessKeyId: "key",
        secretAccessKey: Redacted.make("secret"),
        sessionToken: Option.none()
      })
    }
  )
)

/**
 * Advances the test's clock meanwhile, because the bucket is asked again after 200 ms. Slowly, because a new connection
 * of the pool must be open within 5 seconds of that clock.
 */
const inTime = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(
    work,
    Effect.forever(
      Effect.andThen(
        TestClock.adjust("50 millis"),
        Effect.promise(() => pause(5))
      )
    )
  )

/** Adds rows, but the responses are lost. */
const unanswered = Layer.effect(
  FileStore,
  Effect.map(FileStore, (store) => ({
    ...store,
    add: (row: FileRow, quota: FileQuota | undefined) =>
      Effect.andThen(store.add(row, quota), new StoreUnavailable({ cause: "lost" }))
  }))
).pipe(Layer.provide(FileStore.layer))

const suite = <E>(
  database: Layer.Layer<Database>,
  blobs: Layer.Layer<ArtifactBlobs, E, NodeServices.NodeServices>
) => {
  const filesOver = (store: Layer.Layer<FileStore, never, Database>) =>
    Files.layer.pipe(
      Layer.provideMerge(Layer.mergeAll(store, blobs)),
      Layer.provide(AppConfig.layerOf({ FILE_BYTES_PER_USER: "100" })),
      Layer.provideMerge(NodeServices.layer),
      Layer.provideMerge(database)
    )
  const files = filesOver(FileStore.layer)

  it.effect(
    "have a quota that is exact under concurrency and counts deleted files until their removal",
    () =>
      Effect.gen(function* () {
        yield* addUsers
        const store = yield* Files
        const uploads = yield* Effect.forEach(
          Array.from({ length: 8 }, () => "x".repeat(30)),
          (text) => Effect.result(upload(text)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(uploads.filter(Result.isSuccess).length, 3)
        const refused = uploads.find(Result.isFailure)
        assert.strictEqual(refused?.failure._tag === "Problem" && refused.failure.code, 1202)
        assert.lengthOf(yield* store.list(user, page), 3)
        // Another user is not affected
        yield* upload("y".repeat(100), other)
        const [first] = yield* store.list(user, page)
        if (first !== undefined) yield* inTime(store.delete(user, first.id))
        yield* upload("z".repeat(40))
      }).pipe(Effect.provide(files))
  )

  it.effect("have a quota of bytes and of files, in which a repeated one counts once", () =>
    Effect.gen(function* () {
      yield* addUsers
      const sql = yield* SqlClient.SqlClient
      const adding = (id: string, bytes: number) =>
        `SELECT file_add('${id}', '${user}', 'batch', '', ${bytes}, now(), now(), 100, 2) AS is_added`
      const isAdded = (id: string, bytes: number) =>
        Effect.map(sql.unsafe<{ isAdded: boolean }>(adding(id, bytes)), ([row]) => row!.isAdded)
      assert.isTrue(yield* isAdded("a", 60))
      assert.isTrue(yield* isAdded("a", 60))
      assert.isFalse(yield* isAdded("b", 41))
      assert.isTrue(yield* isAdded("b", 40))
      assert.isTrue(yield* isAdded("b", 40))
      assert.isFalse(yield* isAdded("c", 0))
    }).pipe(Effect.provide(files))
  )

  it.effect("no longer count in the quota when they expire, before the hourly removal", () =>
    Effect.gen(function* () {
      yield* addUsers
      const store = yield* Files
      yield* upload("x".repeat(100))
      yield* TestClock.adjust("30 days")
      assert.lengthOf(yield* store.list(user, page), 0)
      yield* inTime(store.admit(user, 100))
      yield* upload("y".repeat(100))
      yield* TestClock.adjust("30 days")
      yield* inTime(upload("z".repeat(100)))
      assert.lengthOf(yield* store.list(user, page), 1)
    }).pipe(Effect.provide(files))
  )

  it.effect("leave nothing if the response of the store is lost", () =>
    Effect.gen(function* () {
      yield* addUsers
      const lost = yield* Effect.flip(inTime(upload("a")))
      assert.strictEqual(lost._tag, "StoreUnavailable")
      assert.strictEqual(yield* (yield* FileStore).kept(user), 0)
    }).pipe(Effect.provide(filesOver(unanswered)))
  )

  it.effect("leave nothing if an upload breaks off or is refused", () =>
    Effect.gen(function* () {
      yield* addUsers
      const store = yield* Files
      const broken = Stream.concat(Stream.succeed(Buffer.from("a")), Stream.fail("broken" as const))
      const named = Effect.succeed({ filename: "a" })
      assert.strictEqual(yield* Effect.flip(store.upload(user, broken, named)), "broken")
      const refusing = Effect.fail("refused" as const)
      const whole = Stream.succeed(Buffer.from("a"))
      assert.strictEqual(yield* Effect.flip(store.upload(user, whole, refusing)), "refused")
      assert.lengthOf(yield* store.list(user, page), 0)
    }).pipe(Effect.provide(files))
  )

  it.effect(
    "are removed when they expire or are deleted, unless an unfinished batch reads them",
    () =>
      Effect.gen(function* () {
        yield* addUsers
        const sql = yield* SqlClient.SqlClient
        const store = yield* Files
        const [read, unread] = [yield* upload("read"), yield* upload("unread")]
        yield* sql`
        INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
          created_at, updated_at)
        VALUES (gen_random_uuid(), ${user}, 'openai', 'm', 'batches', 'batches', 'processing',
          jsonb_build_object('input_file_id', ${read.id}::text), true, 0, to_timestamp(0), to_timestamp(0))`
        yield* store.delete(user, read.id)
        assert.lengthOf(yield* store.list(user, page), 1)
        assert.lengthOf(yield* readAll(read as never), 1)
        yield* sql`UPDATE tasks SET status = 'completed', captured = 0 WHERE user_id = ${user}`
        yield* TestClock.adjust("31 days")
        assert.lengthOf(yield* store.list(user, page), 0)
        yield* inTime(store.removeDue)
        const rows = yield* sql`SELECT 1 FROM files WHERE user_id = ${user}`
        assert.lengthOf(rows, 0)
        for (const file of [read, unread]) {
          const opened = yield* Effect.result(store.open(file))
          assert.isTrue(Result.isFailure(opened))
        }
      }).pipe(Effect.provide(files))
  )

  it.effect("are replaced by a second output of the same id, and deleted with their user", () =>
    Effect.gen(function* () {
      yield* addUsers
      const sql = yield* SqlClient.SqlClient
      const store = yield* Files
      const { id } = yield* upload("first")
      yield* inTime(store.delete(user, id))
      for (const text of ["x".repeat(500), "y".repeat(600)]) {
        const kept = yield* store.putOutput(
          { id, userId: user, filename: "output.jsonl" },
          Stream.succeed(Buffer.from(text))
        )
        assert.isTrue(kept)
      }
      const [file] = yield* store.list(user, page)
      assert.strictEqual(file?.bytes, 600n)
      yield* inTime(store.deleteAll(user))
      assert.lengthOf(yield* sql`SELECT 1 FROM files WHERE user_id = ${user}`, 0)
      yield* sql`UPDATE users SET deleted_at = to_timestamp(0) WHERE id = ${user}`
      const late = yield* store.putOutput(
        { id, userId: user, filename: "output.jsonl" },
        Stream.succeed(Buffer.from("late"))
      )
      assert.isFalse(late)
    }).pipe(Effect.provide(files))
  )
}

describeStores("the files of users", (database) => suite(database, directory))
describe("the files of users in a bucket", () => suite(embeddedDatabase, bucket))
