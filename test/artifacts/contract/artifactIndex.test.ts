import { assert, it } from "@effect/vitest"
import { Array, DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { ArtifactIndexStore, ArtifactRow } from "../../../src/artifacts/ArtifactIndexStore.ts"
import { makeArtifactId, makeTaskId, UserId } from "../../../src/domain/Ids.ts"
import { describeStores } from "../../support/stores.ts"

const at = Date.UTC(2026, 10, 22, 12, 0, 0, 123)

const rowOf = (n: number) =>
  new ArtifactRow({
    id: makeArtifactId(at + n),
    userId: UserId.make("0190a1b2-0000-7000-8000-000000000001"),
    taskId: makeTaskId(at),
    role: n % 2 === 0 ? "input" : "output",
    mime: n === 3 ? `image/"svg\\+{xml},NULL` : "image/png",
    bytes: n === 4 ? 2n ** 53n + 1n : BigInt(n),
    sha256: Uint8Array.from({ length: 32 }, (_, index) => (index * 37 + n) & 255),
    createdAt: DateTime.makeUnsafe(at + n),
    expiresAt: DateTime.makeUnsafe(at + n + 24 * 3_600_000)
  })

describeStores("ArtifactIndexStore", (database) => {
  const store = ArtifactIndexStore.layer.pipe(Layer.provideMerge(database))

  it.live("finds each row as it was added, also if many were added together", () =>
    Effect.gen(function* () {
      const index = yield* ArtifactIndexStore
      const rows = Array.makeBy(300, rowOf)
      yield* Effect.forEach(rows, index.add, { concurrency: "unbounded", discard: true })
      // Repeated, as after a commit with an unknown outcome
      yield* index.add(rows[7]!)
      for (const row of rows.slice(0, 10)) {
        assert.deepStrictEqual(yield* index.find(row.id), Option.some(row))
      }
      const sql = yield* SqlClient.SqlClient
      // Rows of one commit have one transaction id
      const [counted] = yield* sql<{ readonly rows: number; readonly commits: number }>`
        SELECT count(*)::int AS rows, count(DISTINCT xmin::text)::int AS commits FROM artifacts`
      assert.strictEqual(counted?.rows, 300)
      assert.isBelow(counted?.commits ?? Number.NaN, 10)
      const expired = yield* index.expired(DateTime.makeUnsafe(at + 24 * 3_600_000 + 5), 100)
      assert.deepStrictEqual(
        expired,
        rows.slice(0, 5).map(({ id }) => id)
      )
      yield* index.remove(expired)
      assert.isTrue(Option.isNone(yield* index.find(rows[0]!.id)))
    }).pipe(Effect.provide(store))
  )

  it.live("counts only inputs against their user's limit, also the first and after a removal", () =>
    Effect.gen(function* () {
      const index = yield* ArtifactIndexStore
      const sql = yield* SqlClient.SqlClient
      const add = (n: number, bytes: number) => {
        const { id, role, taskId, userId } = rowOf(n)
        return Effect.map(
          sql`
            SELECT FROM artifacts_add(ARRAY[${id}], ARRAY[${userId}::uuid], ARRAY[${taskId}::uuid], ARRAY[${role}],
              ARRAY['image/png'], ARRAY[${bytes}::bigint], ARRAY[''::bytea], ARRAY[to_timestamp(0)],
              ARRAY[to_timestamp(1)], ARRAY[100::bigint])`,
          (refused) => [id, refused.length === 0] as const
        )
      }
      assert.isFalse((yield* add(0, 101))[1])
      const [input, isAdded] = yield* add(2, 60)
      assert.isTrue(isAdded)
      const [output] = yield* add(1, 1000)
      yield* index.remove([output])
      assert.isFalse((yield* add(4, 41))[1])
      yield* index.remove([input])
      assert.isTrue((yield* add(6, 100))[1])
    }).pipe(Effect.provide(store))
  )

  it.live(
    "postpones a removal by the time for which it has been due, and changes nothing that is read",
    () =>
      Effect.gen(function* () {
        const index = yield* ArtifactIndexStore
        const [late, row, later] = [rowOf(5), rowOf(6), rowOf(60_000)]
        yield* Effect.forEach([late, row, later], index.add, { discard: true })
        const minutesAfter = (minutes: number) => DateTime.add(row.expiresAt, { minutes })
        const due = (minutes: number) => index.expired(minutesAfter(minutes), 100)
        for (const [afterMinutes, waitMinutes] of [
          [0, 30],
          [31, 31],
          [180, 180],
          [2400, 720]
        ] as const) {
          yield* index.postpone([row.id], minutesAfter(afterMinutes))
          const next = afterMinutes + waitMinutes
          assert.deepStrictEqual(yield* due(next - 0.5), [late.id, later.id])
          assert.deepStrictEqual(yield* due(next + 0.5), [late.id, later.id, row.id])
          assert.deepStrictEqual(yield* index.find(row.id), Option.some(row))
        }
        yield* index.remove([late.id, row.id, later.id])
      }).pipe(Effect.provide(store))
  )
})
