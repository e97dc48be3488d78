import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { CallbackStore } from "../../../src/tasks/callbacks/CallbackStore.ts"
import { describeStores } from "../../support/stores.ts"

const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const at = (minute: number) => DateTime.makeUnsafe(minute * 60_000)

/** A callback about task `n`, distinguished by its byte. */
const callback = (n: number, byte: number, isForOwner = true) => ({
  digest: new Uint8Array(32).fill(byte),
  expiresAt: at(15),
  taskId: idOf(n),
  isForOwner
})

describeStores("callbacks that were taken", (database) => {
  const store = CallbackStore.layer.pipe(Layer.provideMerge(database))

  const withRuns = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const [n, owner] of ["a", "a", "b"].entries()) {
      yield* sql`INSERT INTO runs (task_id, epoch, owner, deadline_at) VALUES (${idOf(n)}, 1, ${owner}, '2100-01-01')`
    }
    return yield* CallbackStore
  })

  it.effect("one of many at once is accepted, and its task's owner is notified once", () =>
    Effect.gen(function* () {
      const callbacks = yield* withRuns
      const taken = yield* Effect.all(
        Array.from({ length: 20 }, () => callbacks.accept(callback(0, 1))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(taken.filter((isNew) => isNew).length, 1)
      assert.deepEqual(yield* callbacks.calledOf("b"), [])
      assert.deepEqual(yield* callbacks.calledOf("a"), [idOf(0)])
      assert.deepEqual(yield* callbacks.calledOf("a"), [])
      assert.isFalse(yield* callbacks.accept(callback(0, 1)))
      assert.deepEqual(yield* callbacks.calledOf("a"), [])
    }).pipe(Effect.provide(store))
  )

  it.effect("one without notification, or about a task that does not run, notifies no owner", () =>
    Effect.gen(function* () {
      const callbacks = yield* withRuns
      assert.isTrue(yield* callbacks.accept(callback(0, 1, false)))
      assert.isTrue(yield* callbacks.accept(callback(7, 2)))
      assert.isTrue(yield* callbacks.accept(callback(1, 3)))
      assert.deepEqual(yield* callbacks.calledOf("a"), [idOf(1)])
      assert.deepEqual(yield* callbacks.calledOf("b"), [])
    }).pipe(Effect.provide(store))
  )

  it.effect("are removed once they are too old to be accepted, and not before", () =>
    Effect.gen(function* () {
      const callbacks = yield* withRuns
      assert.isTrue(yield* callbacks.accept(callback(0, 1)))
      yield* callbacks.deleteExpired(at(15))
      assert.isFalse(yield* callbacks.accept(callback(0, 1)))
      yield* callbacks.deleteExpired(at(16))
      assert.isTrue(yield* callbacks.accept(callback(0, 1)))
    }).pipe(Effect.provide(store))
  )
})
