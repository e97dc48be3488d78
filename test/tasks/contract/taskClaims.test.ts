import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Struct } from "effect"
import { SqlClient } from "effect/sql"
import { TaskRow } from "../../../src/db/TaskRow.ts"
import { TaskId } from "../../../src/domain/Ids.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import type { Owned } from "../../../src/tasks/running/OwnedTask.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { NextStep } from "../../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../../src/tasks/TaskStoreLive.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { withoutJob } from "../../support/owned.ts"
import { describeStores } from "../../support/stores.ts"

const at = (seconds: number) => DateTime.makeUnsafe(seconds * 1000)
const idOf = (n: number) => TaskId.make(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`)
const numberOf = ({ task }: Owned) => Number(task.id.slice(-12))
const numbers = (some: ReadonlyArray<Owned>) => some.map(numberOf)
const secondOf = (time: DateTime.Utc) => DateTime.toEpochMillis(time) / 1000

/** Unfinished tasks `from` to `to` of a queue that are due then, without their acceptance. */
const insert = Effect.fnUntraced(function* (
  [from, to]: readonly [number, number],
  { deadline = 1e6, due = 0, queue }: { queue: string; due?: number; deadline?: number }
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO tasks (id, user_id, vendor, model, action, result_kind, status, body, sandbox, price,
      created_at, updated_at)
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(), 'v', 'm',
      'generation', 'images', 'processing', '{"prompt":"x","n":2}', true, 0, to_timestamp(0), to_timestamp(0)
    FROM generate_series(${from}::int, ${to}::int) n`
  yield* sql`
    INSERT INTO runs (task_id, deadline_at, queue, due_at)
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, to_timestamp(${deadline}::float8),
      ${queue}, to_timestamp(${due}::float8)
    FROM generate_series(${from}::int, ${to}::int) n`
})

const claim = (queue: string, second: number, limit = 100, owner = "proc_a") =>
  Effect.flatMap(TaskStore, (tasks) => tasks.claim({ queue, limit, owner, now: at(second) }))

const end = ({ epoch, task }: Owned, second: number, next: NextStep) =>
  Effect.flatMap(TaskStore, (tasks) =>
    tasks.endStep({ taskId: task.id, epoch, now: at(second), next })
  )

const queuesAt = (second: number) =>
  Effect.flatMap(TaskStore, (tasks) =>
    Effect.map(tasks.queues(at(second)), (queues) =>
      Object.fromEntries(queues.map(({ dueAt, queue }) => [queue, secondOf(dueAt)]))
    )
  )

describeStores("claims of due tasks", (database, kind) => {
  const store = TaskStoreLive.layer.pipe(Layer.provideMerge(database))

  it.effect("take due tasks, the longest due first, and each task once", () =>
    Effect.gen(function* () {
      yield* insert([1, 10], { queue: "q", due: 20 })
      yield* insert([11, 20], { queue: "q", due: 10 })
      yield* insert([21, 30], { queue: "q", due: 30 })
      yield* insert([31, 40], { queue: "other", due: 0 })
      const first = yield* claim("q", 25, 12)
      assert.deepStrictEqual(first.map(numberOf), [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 1, 2])
      assert.isTrue(first.every(({ epoch, queue }) => epoch === 1 && queue === "q"))
      const rest = yield* Effect.all(
        Array.from({ length: 8 }, (_, n) => claim("q", 25, 3, `proc_${n}`)),
        { concurrency: "unbounded" }
      )
      const taken = rest.flat().map(numberOf)
      assert.deepStrictEqual(
        taken.sort((x, y) => x - y),
        [3, 4, 5, 6, 7, 8, 9, 10]
      )
      assert.deepStrictEqual(yield* claim("q", 25), [])
      assert.deepStrictEqual(yield* queuesAt(25), { "": 1e6, q: 30, other: 0 })
    }).pipe(Effect.provide(store))
  )

  it.effect(
    "take a task after a step only when it is due again, at the latest at its deadline",
    () =>
      Effect.gen(function* () {
        yield* insert([1, 2], { queue: "q", deadline: 100 })
        const [one, two] = yield* claim("q", 1)
        assert.isTrue(yield* end(one!, 1, { dueAt: at(5), queue: { name: "polls" } }))
        assert.isTrue(yield* end(two!, 1, { dueAt: at(500), queue: { name: "polls" } }))
        assert.deepStrictEqual(yield* claim("polls", 4), [])
        const [again] = yield* claim("polls", 5, 10, "proc_b")
        assert.deepStrictEqual([again?.task.id, again?.epoch], [idOf(1), 2])
        assert.isFalse(yield* end(one!, 6, { dueAt: at(6), queue: { name: "polls" } }), "fenced")
        assert.deepStrictEqual((yield* claim("polls", 100)).map(numberOf), [2])
      }).pipe(Effect.provide(store))
  )

  it.effect("return the whole row of a task without a job, as it is stored", () =>
    Effect.gen(function* () {
      yield* insert([1, 1], { queue: "q" })
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        UPDATE tasks SET price = 9007199254740993, captured = 9007199254740992, metadata = '{"zz":"1","a":"2"}',
          body = '{"long name":1.50,"n":2,"é":[null]}', trace_id = ${"a".repeat(32)}, started_at = to_timestamp(1.234),
          error = '{"code": 4004, "title": "t", "detail": "d"}', result = '["x"]'`
      const [claimed] = yield* claim("q", 1)
      const stored = Option.getOrThrow(yield* (yield* TaskStore).find(idOf(1)))
      const row = Struct.pick(withoutJob(claimed).task, Struct.keys(TaskRow.fields))
      assert.deepStrictEqual(row, { ...stored })
      assert.strictEqual(JSON.stringify(row.metadata), '{"zz":"1","a":"2"}')
    }).pipe(Effect.provide(store))
  )

  it.effect("an unknown task has no job and no view", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      assert.isTrue(Option.isNone(yield* tasks.job(idOf(1))))
      assert.isTrue(Option.isNone(yield* tasks.view(idOf(1))))
    }).pipe(Effect.provide(store))
  )

  it.effect("the progress of a job never goes down, and stays if none is reported", () =>
    Effect.gen(function* () {
      yield* insert([1, 2], { queue: "q" })
      const sql = yield* SqlClient.SqlClient
      const tasks = yield* TaskStore
      const shown = Effect.map(
        sql<{ progress: number | null }>`SELECT progress FROM runs ORDER BY task_id`,
        (rows) => rows.map(({ progress }) => progress)
      )
      const begin = ({ epoch, task }: Owned, n: number, showsProgress: boolean) =>
        tasks.beginAttempt({
          taskId: task.id,
          epoch,
          n,
          vendor: "v",
          accountId: "a",
          bodyHash: new Uint8Array([1]),
          queue: { name: "q" },
          now: at(n),
          showsProgress
        })
      for (const owned of yield* claim("q", 1)) {
        const { epoch, task } = owned
        yield* begin(owned, 1, task.id === idOf(1))
        const next = { dueAt: at(2), queue: { name: "polls" } }
        yield* tasks.endStep({ taskId: task.id, epoch, now: at(1), next })
      }
      assert.deepStrictEqual(yield* shown, [0, null])
      const reports = [
        [40, 40],
        [20, 40],
        [undefined, 40],
        [70, 70]
      ] as const
      for (const [progress, expected] of reports) {
        for (const { epoch, task } of yield* claim("polls", 9)) {
          const next = { dueAt: at(3), queue: { name: "polls" } }
          const reported = task.id === idOf(1) ? { progress } : {}
          yield* tasks.endStep({ taskId: task.id, epoch, now: at(2), next, ...reported })
        }
        assert.deepStrictEqual(yield* shown, [expected, null])
      }
      // A vendor that reports nothing takes over
      for (const owned of yield* claim("polls", 9)) yield* begin(owned, 2, false)
      assert.deepStrictEqual(yield* shown, [null, null])
    }).pipe(Effect.provide(store))
  )

  it.effect("a callback during a step makes the task due once when the step ends", () =>
    Effect.gen(function* () {
      yield* insert([1, 1], { queue: "q" })
      const [owned] = yield* claim("q", 1)
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE runs SET callback_received = true`
      const next = { dueAt: at(60), queue: { name: "polls" } }
      assert.isTrue(yield* end(owned!, 3, next))
      const [called] = yield* claim("polls", 3)
      assert.isTrue(yield* end(called!, 4, next), "one callback makes it due once")
      assert.deepStrictEqual(yield* claim("polls", 59), [])
    }).pipe(Effect.provide(store))
  )

  it.effect("tasks of dead processes are freed without reading the others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const tasks = yield* TaskStore
      const processes = yield* ProcessStore
      for (const id of ["proc_a", "proc_b"]) yield* processes.heartbeat(id, at(100))
      yield* processes.heartbeat("proc_dead", at(80))
      yield* insert([1, 100], { queue: "q" })
      yield* claim("q", 1, 50, "proc_a")
      yield* claim("q", 1, 50, "proc_dead")
      const blocks = Effect.map(
        sql<{ plan: string }>`
          EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM task_orphans_release(${new Date(70_000)}, 100)`,
        (rows) => {
          const text = JSON.stringify(rows)
          return Number(/shared hit=(\d+)/u.exec(text)?.[1])
        }
      )
      yield* blocks
      const few = yield* blocks
      assert.isAbove(few, 0)
      yield* insert([101, 5000], { queue: "q" })
      yield* claim("q", 1, 2000, "proc_a")
      yield* blocks
      assert.isAtMost(
        yield* blocks,
        few + 10,
        "waiting tasks and those of live processes are not read"
      )

      assert.strictEqual(yield* tasks.releaseOrphans(at(90), 100), 50)
      assert.strictEqual(yield* tasks.releaseOrphans(at(90), 100), 0)
      yield* claim("q", 1, 2, "proc_gone")
      yield* claim("q", 1, 3, "proc_gone_too")
      assert.strictEqual(yield* tasks.releaseOrphans(at(90), 3), 3, "in batches")
      assert.strictEqual(yield* tasks.releaseOrphans(at(90), 100), 2)
    }).pipe(Effect.provide(Layer.provideMerge(ProcessStore.layer, store)))
  )

  it.effect("a share leaves out a task whose owner has ended its step in the meantime", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const processes = yield* ProcessStore
      yield* insert([1, 2], { queue: "q" })
      yield* processes.heartbeat("proc_a", at(100))
      const [slow] = yield* claim("q", 1, 2, "proc_slow")
      const aliveSince = at(90)
      const [found] = yield* tasks.share(aliveSince, "proc_a", 10)
      assert.sameMembers([...found!.tasks], [idOf(1), idOf(2)])
      yield* end(slow!, 100, { dueAt: at(500), queue: { name: "q" } })
      const taken = yield* tasks.claim({
        queue: "q",
        limit: 10,
        owner: "proc_a",
        now: at(100),
        share: { tasks: found!.tasks, aliveSince }
      })
      assert.deepStrictEqual(numbers(taken), [2])
    }).pipe(Effect.provide(Layer.provideMerge(ProcessStore.layer, store)))
  )

  for (const [count, mostOf] of [
    [50, 0.7],
    [500, 0.6]
  ] as const) {
    it.effect(
      `${count} tasks of a process that left are split between two others, at most ${mostOf * 100} to ${100 - mostOf * 100}, whichever scans first`,
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const tasks = yield* TaskStore
          const processes = yield* ProcessStore
          const queues = Array.from({ length: 8 }, (_, n) => `q${n}`)
          const beat = (id: string, second: number) => processes.heartbeat(id, at(second))
          const takeShare = Effect.fnUntraced(function* (owner: string, aliveSince: DateTime.Utc) {
            const taken: Array<number> = []
            for (const { queue, tasks: all } of yield* tasks.share(aliveSince, owner, 5000)) {
              const share = { tasks: all, aliveSince }
              const claimed = yield* tasks.claim({ queue, limit: 500, owner, now: at(100), share })
              assert.isTrue(claimed.every((owned) => owned.queue === queue))
              taken.push(...claimed.map(numberOf))
            }
            return taken
          })
          const takeShareOnly = Effect.fnUntraced(function* (
            owner: string,
            aliveSince: DateTime.Utc
          ) {
            const taken = yield* takeShare(owner, aliveSince)
            for (const queue of queues) {
              assert.deepStrictEqual(yield* claim(queue, 100, 500, owner), [], "nothing is free")
            }
            return taken
          })
          const isShared = (some: ReadonlyArray<number>, others: ReadonlyArray<number>) => {
            assert.strictEqual(new Set([...some, ...others]).size, count, "each once")
            assert.strictEqual(some.length + others.length, count)
            assert.isAtMost(Math.max(some.length, others.length), count * mostOf)
          }
          for (const [n, queue] of queues.entries()) {
            const [from, to] = [Math.floor((n * count) / 8) + 1, Math.floor(((n + 1) * count) / 8)]
            yield* insert([from, to], { queue })
            yield* claim(queue, 1, 500, "proc_dead")
          }
          for (const id of ["proc_a", "proc_b"]) yield* beat(id, 100)
          yield* beat("proc_dead", 80)
          isShared(yield* takeShareOnly("proc_a", at(90)), yield* takeShareOnly("proc_b", at(90)))

          // A stopping process hands over task by task, and its heartbeat continues
          yield* beat("proc_c", 100)
          for (const { epoch, taskId } of yield* tasks.ownedBy("proc_a")) {
            yield* tasks.handOver(taskId, epoch)
            yield* tasks.handOver(taskId, epoch)
            assert.strictEqual(yield* tasks.runState(taskId, epoch), "Taken", "it is fenced")
          }
          assert.deepStrictEqual(yield* tasks.share(at(90), "proc_a", 5000), [])
          const left = yield* takeShare("proc_c", at(90))
          assert.deepStrictEqual(yield* tasks.ownedBy("proc_a"), [])
          // Its other heir dies before it scans, and the rescue frees what it did not take
          const [row] = yield* sql<{ n: number }>`
            SELECT count(*)::int AS n FROM runs WHERE owner LIKE 'left %'`
          assert.isAbove(row?.n ?? 0, 0)
          assert.isAbove(left.length, 0)
          assert.strictEqual(yield* tasks.releaseOrphans(at(88), 5000), 0, "shares come first")
          assert.deepStrictEqual(yield* tasks.share(at(90), "proc_a", 5000), [])
          assert.strictEqual(yield* tasks.releaseOrphans(at(88), 5000), row?.n)
          const rest = yield* Effect.forEach(queues, (queue) => claim(queue, 100, 500, "proc_c"))
          assert.strictEqual(rest.flat().length, row?.n)

          // Processes that left with tasks in hand whose submits were cut off
          for (const id of ["proc_d", "proc_e"]) yield* beat(id, 110)
          for (const id of ["proc_b", "proc_c"]) yield* processes.leave(id, at(105))
          assert.strictEqual(yield* tasks.releaseOrphans(at(108), 5000), 0, "shares come first")
          isShared(yield* takeShareOnly("proc_e", at(108)), yield* takeShareOnly("proc_d", at(108)))
        }).pipe(Effect.provide(Layer.provideMerge(ProcessStore.layer, store)))
    )
  }

  it.effect(
    "return the newest attempt, and of a submitted job only what a poll needs; its end also needs the number of results",
    () =>
      Effect.gen(function* () {
        const tasks = yield* TaskStore
        yield* insert([1, 1], { queue: "q" })
        const [owned] = yield* claim("q", 1)
        const { attempt: before, task } = withoutJob(owned)
        assert.isTrue(Option.isNone(before))
        assert.deepStrictEqual(task.body, { prompt: "x", n: 2 })
        const attempt = { taskId: idOf(1), epoch: 1, n: 1, vendor: "v", accountId: "a" }
        const queue = { name: "q" }
        yield* tasks.beginAttempt({ ...attempt, queue, bodyHash: new Uint8Array([1]), now: at(1) })
        yield* tasks.endStep({
          taskId: idOf(1),
          epoch: 1,
          now: at(2),
          attempt: { n: 1, state: "submitted", handle: { job: "j" }, failure: null },
          next: { dueAt: at(2), queue: { name: "polls" }, inputs: { "#/images/0": "art_1" } }
        })
        const [polled] = yield* claim("polls", 3)
        const { accountId, handle } = polled!.job!
        assert.deepStrictEqual([accountId, handle], ["a", { job: "j" }])
        assert.deepStrictEqual([polled!.task.id, polled!.task.model], [idOf(1), "m"])
        assert.notProperty(polled!.task, "body")
        const [row, none] = yield* Effect.all([tasks.ofJob(idOf(1)), tasks.ofJob(idOf(2))], {
          concurrency: 2
        })
        const { body, id, status } = Option.getOrThrow(row)
        assert.deepStrictEqual([id, status, body], [idOf(1), "processing", { n: 2 }])
        assert.isTrue(Option.isNone(none), "there is none")
      }).pipe(Effect.provide(store))
  )

  it.effect("a task that this release cannot read delays no other", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* insert([1, 3], { queue: "q" })
      yield* sql`UPDATE runs SET attempt = 1 WHERE task_id = ${idOf(1)}`
      // As a newer release might write it
      yield* sql`INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, started_at, handle)
        VALUES (${idOf(1)}, 1, 'v', 'a', '', 'submitted', to_timestamp(0), '["a handle of another form"]')`
      assert.deepStrictEqual((yield* claim("q", 1)).map(numberOf), [2, 3])
    }).pipe(Effect.provide(store))
  )

  if (kind === "postgres") {
    it.effect("skip tasks that another transaction has locked, without waiting for it", () =>
      Effect.gen(function* () {
        const tasks = yield* TaskStore
        const first = `SELECT FROM runs WHERE task_id = '${idOf(1)}'`
        const beside = (from: string) => Effect.map(besideLocked(first, claim(from, 5)), numbers)
        yield* insert([1, 2], { queue: "q", deadline: 4 })
        yield* insert([3, 3], { queue: "q", due: 1 })
        assert.deepStrictEqual(yield* beside(""), [2], "after their deadline")
        assert.deepStrictEqual(yield* beside("q"), [3])
        yield* claim("q", 5)
        const share = { tasks: [1, 2, 3].map(idOf), aliveSince: at(90) }
        const claimed = tasks.claim({ queue: "q", limit: 9, owner: "b", now: at(5), share })
        assert.deepStrictEqual(yield* Effect.map(besideLocked(first, claimed), numbers), [2, 3])
        const released = tasks.releaseOrphans(at(90), 100)
        assert.strictEqual(yield* besideLocked(first, released), 2)
      }).pipe(Effect.provide(store))
    )
  }

  it.effect("a task without an owner begins no submit", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      yield* insert([1, 1], { queue: "q" })
      yield* claim("q", 1)
      yield* tasks.releaseRun(idOf(1), 1)
      const attempt = { taskId: idOf(1), epoch: 1, n: 1, vendor: "v", accountId: "a" }
      const bodyHash = new Uint8Array([1])
      const queue = { name: "q" }
      assert.isFalse(yield* tasks.beginAttempt({ ...attempt, queue, bodyHash, now: at(1) }))
    }).pipe(Effect.provide(store))
  )
})

const rate = { name: "account/polls", spacingMillis: 50 }

describeStores("claims under a rate limit", (database) => {
  const store = TaskStoreLive.layer.pipe(Layer.provideMerge(database))

  /** Tasks of a rated queue, whose rate is known from the first step that ended there. */
  const rated = Effect.fnUntraced(function* (tasks: number, queue = rate, deadline = 1e6) {
    yield* insert([1, tasks], { queue: queue.name, deadline })
    yield* insert([tasks + 1, tasks + 1], { queue: "first" })
    const [first] = yield* claim("first", 0)
    yield* end(first!, 0, { dueAt: at(1e5), queue })
  })

  it.effect(
    "two processes poll 10,000 open tasks at 20 a second, and each task once before any twice",
    () =>
      Effect.gen(function* () {
        yield* rated(10_000)
        const asked = new Map<number, number>()
        const seconds = 12
        for (let second = 1; second <= seconds; second += 1) {
          const claimed = yield* Effect.all(
            [claim(rate.name, second, 100, "proc_a"), claim(rate.name, second, 100, "proc_b")],
            { concurrency: 2 }
          )
          for (const owned of claimed.flat()) {
            assert.isAtLeast(secondOf(owned.startsAt), second)
            assert.isBelow(secondOf(owned.startsAt), second + 1.05)
            asked.set(numberOf(owned), (asked.get(numberOf(owned)) ?? 0) + 1)
            yield* end(owned, second, { dueAt: at(second + 2.5), queue: rate })
          }
        }
        const total = [...asked.values()].reduce((sum, times) => sum + times, 0)
        assert.isAtMost(total, 20 * (seconds + 1))
        assert.isAtLeast(total, 20 * (seconds - 1))
        assert.isAtMost(Math.max(...asked.values()), 1)
      }).pipe(Effect.provide(store))
  )

  it.effect(
    "permits for two submits a minute are half a minute apart, and the queue shows the next",
    () =>
      Effect.gen(function* () {
        const slow = { name: "account/submits", spacingMillis: 30_000 }
        yield* rated(3, slow)
        assert.deepStrictEqual((yield* claim(slow.name, 10)).map(numberOf), [1])
        assert.strictEqual((yield* queuesAt(10))[slow.name], 39)
        assert.deepStrictEqual(yield* claim(slow.name, 38), [])
        const [second] = yield* claim(slow.name, 39)
        assert.deepStrictEqual([numberOf(second!), secondOf(second!.startsAt)], [2, 40])
        assert.deepStrictEqual((yield* claim(slow.name, 69)).map(numberOf), [3])
      }).pipe(Effect.provide(store))
  )

  it.effect("a submit that has begun is taken over without a second permit", () =>
    Effect.gen(function* () {
      const tasks = yield* TaskStore
      const slow = { name: "account/submits", spacingMillis: 3_600_000 }
      yield* rated(2, slow)
      const [owned] = yield* claim(slow.name, 10)
      yield* tasks.beginAttempt({
        taskId: owned!.task.id,
        epoch: owned!.epoch,
        n: 1,
        vendor: "v",
        accountId: "a",
        bodyHash: new Uint8Array([1]),
        queue: { name: "v/m/submits" },
        now: at(10)
      })
      yield* tasks.releaseRun(owned!.task.id, owned!.epoch)
      assert.deepStrictEqual((yield* claim("v/m/submits", 11)).map(numberOf), [1])
      assert.deepStrictEqual(yield* claim(slow.name, 11), [])
    }).pipe(Effect.provide(store))
  )

  it.effect("a task without a permit is still claimed at its deadline", () =>
    Effect.gen(function* () {
      const slow = { name: "account/submits", spacingMillis: 3_600_000 }
      yield* rated(3, slow, 60)
      yield* claim(slow.name, 10)
      assert.strictEqual((yield* queuesAt(10))[""], 60)
      assert.deepStrictEqual(yield* claim("", 59), [])
      assert.deepStrictEqual((yield* claim("", 60)).map(numberOf).sort(), [2, 3])
    }).pipe(Effect.provide(store))
  )

  it.effect("a clock that was briefly an hour fast delays no task", () =>
    Effect.gen(function* () {
      yield* rated(10)
      const starts = (second: number) =>
        Effect.map(claim(rate.name, second, 2), (all) => all.map((it) => secondOf(it.startsAt)))
      assert.deepStrictEqual(yield* starts(100), [100, 100.05])
      assert.deepStrictEqual(yield* starts(3700), [3700, 3700.05])
      assert.deepStrictEqual(yield* starts(100), [100, 100.05])
      assert.deepStrictEqual(yield* starts(100), [100.1, 100.15], "after the earlier permits")
    }).pipe(Effect.provide(store))
  )
})
