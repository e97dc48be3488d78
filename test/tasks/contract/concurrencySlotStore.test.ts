import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { Process } from "../../../src/process/Process.ts"
import { ConcurrencyLimiter } from "../../../src/tasks/submission/ConcurrencyLimiter.ts"
import { ConcurrencySlotStore } from "../../../src/tasks/submission/ConcurrencySlotStore.ts"
import { advance, eventually } from "../../support/gateway.ts"
import { describeStores } from "../../support/stores.ts"

const line = "dashscope:1/wan2.5-t2i-preview"

/** Ids sort by number, as those of tasks by time. */
const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)

const processLayer = (id: string) =>
  Layer.succeed(Process, {
    id,
    aliveSince: DateTime.now,
    callsAliveSince: DateTime.now,
    ping: Effect.void
  })

/** An unfinished task that a process owns. */
const run = (n: number, owner: string | null) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      sql`INSERT INTO runs (task_id, epoch, owner, deadline_at) VALUES (${idOf(n)}, 1, ${owner}, '2100-01-01')`
  )

/** As `task_finish_many` does, for any process that ends the task. */
const end = (n: number) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DELETE FROM runs WHERE task_id = ${idOf(n)}`)

const holders = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.map(
    sql<{ n: string }>`SELECT right(task_id::text, 12) AS n FROM runs WHERE slot_held ORDER BY 1`,
    (rows) => rows.map(({ n }) => Number(n))
  )
)

describeStores("slots of a vendor account", (database) => {
  const store = ConcurrencySlotStore.layer.pipe(Layer.provideMerge(database))

  /** The slots as one process sees them. */
  const processOf = (id: string) =>
    Effect.map(
      Layer.build(Layer.fresh(ConcurrencyLimiter.layer).pipe(Layer.provide(processLayer(id)))),
      (context) => Effect.provideContext(ConcurrencyLimiter, context)
    ).pipe(Effect.flatten)

  it.effect(
    "two processes together run as many jobs as the account has slots, oldest task first",
    () =>
      Effect.gen(function* () {
        const processes = { a: yield* processOf("a"), b: yield* processOf("b") }
        const begun: Array<number> = []
        let running = 0
        let most = 0
        const job = Effect.fnUntraced(function* (n: number, owner: "a" | "b") {
          yield* processes[owner].acquire({ taskId: idOf(n), epoch: 1 }, { line, max: 3 })
          begun.push(n)
          running += 1
          most = Math.max(most, running)
          yield* Effect.sleep("5 seconds")
          running -= 1
          yield* end(n)
          yield* processes[owner].notifyReleased
        })
        const tasks = Array.from({ length: 12 }, (_, n) => n)
        for (const n of tasks) yield* run(n, n % 2 === 0 ? "a" : "b")
        // The youngest ask first; one poll of each process later all wait for a slot
        const fibers = yield* Effect.forEach(tasks.slice(3).toReversed(), (n) =>
          Effect.forkScoped(job(n, n % 2 === 0 ? "a" : "b"))
        )
        yield* eventually(holders, (all) => all.length === 3)
        fibers.push(
          ...(yield* Effect.forEach([2, 1, 0], (n) =>
            Effect.forkScoped(job(n, n % 2 === 0 ? "a" : "b"))
          ))
        )
        yield* eventually(
          Effect.map(advance("1 second"), () =>
            fibers.every((fiber) => fiber.pollUnsafe() !== undefined)
          ),
          (areAllDone) => areAllDone
        )
        assert.strictEqual(most, 3)
        // The first three in any order; those who waited then ran in the order of their creation
        const later = begun.slice(3)
        const oldestFirst = [...later].sort((x, y) => x - y)
        const threeByThree = (all: ReadonlyArray<number>) =>
          [0, 3, 6].map((at) => all.slice(at, at + 3).sort((x, y) => x - y))
        assert.deepEqual(threeByThree(later), threeByThree(oldestFirst))
      }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("a slot is free when its task has ended, in any process", () =>
    Effect.gen(function* () {
      const slots = yield* processOf("a")
      yield* run(1, "a")
      yield* run(2, "a")
      yield* slots.acquire({ taskId: idOf(1), epoch: 1 }, { line, max: 1 })
      const second = yield* Effect.forkScoped(
        slots.acquire({ taskId: idOf(2), epoch: 1 }, { line, max: 1 })
      )
      yield* advance("5 seconds")
      assert.isUndefined(second.pollUnsafe())
      yield* end(1)
      yield* advance("2 seconds")
      yield* Fiber.join(second)
    }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("an interrupted waiter takes no slot once its task has ended", () =>
    Effect.gen(function* () {
      const slots = yield* processOf("a")
      for (const n of [1, 2, 3]) yield* run(n, "a")
      yield* slots.acquire({ taskId: idOf(1), epoch: 1 }, { line, max: 1 })
      const second = yield* Effect.forkScoped(
        slots.acquire({ taskId: idOf(2), epoch: 1 }, { line, max: 1 })
      )
      const third = yield* Effect.forkScoped(
        slots.acquire({ taskId: idOf(3), epoch: 1 }, { line, max: 1 })
      )
      yield* advance("2 seconds")
      yield* Fiber.interrupt(second)
      yield* end(2)
      yield* end(1)
      yield* advance("2 seconds")
      yield* Fiber.join(third)
      assert.deepEqual(yield* holders, [3])
    }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect(
    "a slot of a process that died moves with its task to the next owner, and is not given twice",
    () =>
      Effect.gen(function* () {
        const [a, b] = [yield* processOf("a"), yield* processOf("b")]
        const sql = yield* SqlClient.SqlClient
        yield* run(1, "a")
        yield* run(2, "b")
        yield* a.acquire({ taskId: idOf(1), epoch: 1 }, { line, max: 1 })
        const second = yield* Effect.forkScoped(
          b.acquire({ taskId: idOf(2), epoch: 1 }, { line, max: 1 })
        )
        // The rescuer frees what the dead process owned, and b takes it
        yield* sql`UPDATE runs SET owner = NULL WHERE owner = 'a'`
        yield* advance("3 seconds")
        assert.isUndefined(second.pollUnsafe())
        yield* sql`UPDATE runs SET owner = 'b', epoch = 2 WHERE task_id = ${idOf(1)}`
        yield* b.acquire({ taskId: idOf(1), epoch: 2 }, { line, max: 1 })
        assert.deepEqual(yield* holders, [1])
        yield* end(1)
        yield* b.notifyReleased
        yield* Fiber.join(second)
      }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("a waiting task without an owner is passed over, and keeps its place", () =>
    Effect.gen(function* () {
      const slots = yield* processOf("a")
      const sql = yield* SqlClient.SqlClient
      for (const n of [1, 2, 3, 4]) yield* run(n, "a")
      const take = (n: number, epoch = 1) =>
        Effect.forkScoped(slots.acquire({ taskId: idOf(n), epoch }, { line, max: 1 }))
      yield* Fiber.join(yield* take(1))
      const second = yield* take(2)
      const third = yield* take(3)
      yield* take(4)
      yield* advance("2 seconds")
      yield* Fiber.interrupt(second)
      yield* sql`UPDATE runs SET owner = NULL WHERE task_id = ${idOf(2)}`
      yield* end(1)
      yield* advance("2 seconds")
      yield* Fiber.join(third)
      yield* sql`UPDATE runs SET owner = 'a', epoch = 2 WHERE task_id = ${idOf(2)}`
      const again = yield* take(2, 2)
      yield* advance("2 seconds")
      yield* end(3)
      yield* advance("2 seconds")
      yield* Fiber.join(again)
      assert.deepEqual(yield* holders, [2])
    }).pipe(Effect.scoped, Effect.provide(store))
  )

  it.effect("a thousand waiting tasks are served by a few statements, each once", () =>
    Effect.gen(function* () {
      const slots = yield* processOf("a")
      const sql = yield* SqlClient.SqlClient
      const tasks = 1200
      yield* sql`INSERT INTO runs (task_id, epoch, owner, deadline_at)
        SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 1, 'a', '2100-01-01'
        FROM generate_series(1, ${tasks}::int) n`
      const begun: Array<number> = []
      for (let n = 1; n <= tasks; n += 1) {
        yield* Effect.forkScoped(
          slots
            .acquire({ taskId: idOf(n), epoch: 1 }, { line, max: 50 })
            .pipe(Effect.andThen(Effect.sync(() => begun.push(n))))
        )
      }
      yield* eventually(
        Effect.sync(() => begun.length),
        (count) => count === 50
      )
      for (let round = 1; round < tasks / 50; round += 1) {
        yield* sql`DELETE FROM runs WHERE slot_held`
        yield* slots.notifyReleased
        yield* eventually(
          Effect.sync(() => begun.length),
          (count) => count === 50 * (round + 1)
        )
      }
      assert.deepEqual(
        begun,
        Array.from({ length: tasks }, (_, at) => at + 1)
      )
    }).pipe(Effect.scoped, Effect.provide(store))
  )
})
