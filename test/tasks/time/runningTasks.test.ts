import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TaskId } from "../../../src/domain/Ids.ts"
import { Process } from "../../../src/process/heartbeat/Process.ts"
import { Rescuer } from "../../../src/tasks/running/Rescuer.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { Progress } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** A vendor whose job runs until `done`. Records the seconds of its requests. */
const vendor = (
  done: (second: number) => Progress | VendorError,
  submit: (n: number) => VendorError | undefined = () => undefined
) => {
  const submits: Array<number> = []
  const polls: Array<number> = []
  const cancels: Array<number> = []
  const second = Effect.map(Clock.currentTimeMillis, (now) => now / 1000)
  return {
    submits,
    polls,
    cancels,
    account: {
      submit: () =>
        Effect.flatMap(second, (now) => {
          submits.push(now)
          const refusal = submit(submits.length)
          const pollAfter = Duration.seconds(3)
          return refusal === undefined
            ? Effect.succeed({ _tag: "Accepted" as const, handle: { job: "j1" }, pollAfter })
            : Effect.fail(refusal)
        }),
      poll: () =>
        Effect.flatMap(second, (now) => {
          polls.push(now)
          const progress = done(now)
          return progress instanceof VendorError ? Effect.fail(progress) : Effect.succeed(progress)
        }),
      cancel: () =>
        Effect.map(second, (now) => {
          cancels.push(now)
          return "Canceled" as const
        })
    }
  }
}

const running: Progress = { _tag: "Running", pollAfter: Duration.seconds(3) }
const images: Progress = {
  _tag: "Done",
  result: {
    items: [{ _tag: "Bytes", bytes: new Uint8Array([1, 2, 3]), mime: "image/png" }]
  }
}

/** A task that no process of the test created. */
const left = "01000000-0000-7000-8000-000000000002"

const create = Effect.gen(function* () {
  const user = yield* makeUser()
  const created = yield* user.call("POST", path, { prompt: "x" })
  assert.strictEqual(created.status, 202, created.text)
  const id = TaskId.make(created.json.task_info.id)
  const get = user.call("GET", `${path}/${id}`)
  const wallet = Effect.map(user.call("GET", "/manage/v1/wallet"), (it) => it.json)
  return { user, id, get, wallet, cancel: user.call("DELETE", `${path}/${id}`) }
})

describe("a running task over time", () => {
  const steady = vendor((second) => (second < 10 ? running : images))
  it.effect("is polled after the wait that the vendor named, and settles its price", () =>
    Effect.gen(function* () {
      const { get, wallet } = yield* create
      yield* eventually(get, (it) => it.json.task_info.status === "processing")
      assert.strictEqual((yield* wallet).held_balance, "7.50")
      yield* advance("13 seconds")
      const done = yield* eventually(get, (it) => it.json.task_info.status === "completed")
      assert.lengthOf(done.json.images, 1)
      assert.match(done.json.images[0], /\/artifacts\/art_/u)
      assert.deepStrictEqual(steady.polls, [3, 6, 9, 12])
      const after = yield* wallet
      assert.deepStrictEqual([after.settled_balance, after.held_balance], ["992.50", "0.00"])
    }).pipe(Effect.provide(layerGateway({ vendor: steady.account })))
  )

  const endless = vendor(() => running)
  it.effect(
    "fails with 4005 at its deadline, which releases the hold and cancels the vendor's job",
    () =>
      Effect.gen(function* () {
        const { get, wallet } = yield* create
        yield* eventually(get, () => endless.submits.length === 1)
        yield* advance("118 seconds", "9 seconds")
        assert.strictEqual((yield* get).json.task_info.status, "processing")
        yield* advance("4 seconds")
        const failed = yield* get
        assert.strictEqual(failed.json.task_info.error.code, 4005)
        assert.strictEqual(failed.json.task_info.updated_at, "1970-01-01T00:02:00.000Z")
        assert.strictEqual((yield* wallet).available_balance, "1000.00")
        const polls = endless.polls.length
        yield* advance("10 seconds")
        assert.strictEqual(endless.polls.length, polls, "it is not polled any more")
        assert.strictEqual(endless.cancels.length, 1, "the job is cancelled at the vendor")
      }).pipe(
        Effect.provide(
          layerGateway({ vendor: endless.account, env: { TASK_DEADLINE: "2 minutes" } })
        )
      )
  )

  const elsewhere = vendor(() => running)
  it.effect("is left alone after another process ends it, which itself tells the vendor", () =>
    Effect.gen(function* () {
      const { get, id } = yield* create
      const store = yield* TaskStore
      yield* eventually(get, () => elsewhere.submits.length === 1)
      yield* advance("4 seconds")
      // Like another process: without notifying this one
      const now = yield* DateTime.now
      const finished = yield* store.finish({
        taskId: id,
        epoch: Option.none(),
        outcome: { status: "failed", error: { code: 4004, title: "Cancelled", detail: "x" } },
        event: { id: "evt_other" as never, body: new Uint8Array([123, 125]) },
        alert: () => ({ id: "evt_alert" as never, body: new Uint8Array() }),
        throttleSeconds: 3600,
        now
      })
      assert.strictEqual(finished._tag, "Finished")
      yield* advance("10 seconds")
      const polls = elsewhere.polls.length
      yield* advance("30 seconds")
      assert.strictEqual(elsewhere.polls.length, polls)
      assert.deepStrictEqual(elsewhere.cancels, [], "the vendor is told once, by that process")
    }).pipe(Effect.provide(layerGateway({ vendor: elsewhere.account })))
  )

  const taken = vendor(() => running)
  it.effect("stops when another process owns it, and the vendor's job continues", () =>
    Effect.gen(function* () {
      const { get, id } = yield* create
      const sql = yield* SqlClient.SqlClient
      const beat = Effect.flatMap(
        DateTime.now,
        (now) =>
          sql`INSERT INTO processes VALUES ('proc_other', ${DateTime.toDateUtc(now)}, ${DateTime.toDateUtc(DateTime.add(now, { hours: 1 }))}) ON CONFLICT DO NOTHING`
      )
      yield* eventually(get, () => taken.submits.length === 1)
      yield* beat
      yield* sql`UPDATE runs SET owner = 'proc_other', epoch = epoch + 1 WHERE task_id = ${id}`
      yield* advance("12 seconds")
      const polls = taken.polls.length
      yield* advance("30 seconds")
      assert.strictEqual(taken.polls.length, polls)
      assert.strictEqual(taken.cancels.length, 0)
      assert.strictEqual((yield* get).json.task_info.status, "processing")
    }).pipe(Effect.provide(layerGateway({ vendor: taken.account })))
  )

  const adopted = vendor(() => images)
  it.effect("runs even if only the store assigns it to this process", () =>
    Effect.gen(function* () {
      const { get, id } = yield* create
      const sql = yield* SqlClient.SqlClient
      const { id: self } = yield* Process
      yield* eventually(get, () => adopted.submits.length === 1)
      // A claim whose response was lost leaves a task like this one, without an actor
      yield* advance("4 seconds")
      yield* eventually(get, (it) => it.json.task_info.status === "completed")
      const second = "01000000-0000-7000-8000-000000000001"
      yield* sql`INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body,
          sandbox, price, trace_id, created_at, updated_at)
        SELECT ${second}::uuid, user_id, api_key_id, vendor, model, action, result_kind, 'pending', body, sandbox, 0, trace_id,
          created_at, updated_at
        FROM tasks WHERE id = ${id}`
      yield* sql`INSERT INTO holds (id, user_id, kind, amount, created_at) SELECT ${second}::uuid, user_id, 'task', 0, created_at FROM tasks WHERE id = ${id}`
      yield* sql`INSERT INTO runs (task_id, api_key_id, epoch, owner, attempt, deadline_at) VALUES (${second}::uuid, NULL, 1, ${self}, 0, '1970-01-02')`
      yield* eventually(
        Effect.andThen(
          advance("1 second"),
          sql`SELECT 1 FROM tasks WHERE id = ${second}::uuid AND status = 'completed'`
        ),
        (rows) => rows.length === 1
      )
    }).pipe(Effect.provide(layerGateway({ vendor: adopted.account })))
  )

  const late = vendor(() => images)
  it.effect("is not submitted if no process ran it before its deadline", () =>
    Effect.gen(function* () {
      const { id } = yield* create
      const sql = yield* SqlClient.SqlClient
      yield* advance("4 seconds")
      yield* sql`INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body,
          sandbox, price, trace_id, created_at, updated_at)
        SELECT ${left}::uuid, user_id, api_key_id, vendor, model, action, result_kind, 'pending', body, sandbox, 0, trace_id,
          created_at, updated_at
        FROM tasks WHERE id = ${id}`
      yield* sql`INSERT INTO holds (id, user_id, kind, amount, created_at) SELECT ${left}::uuid, user_id, 'task', 0, created_at FROM tasks WHERE id = ${id}`
      yield* sql`INSERT INTO runs (task_id, api_key_id, epoch, owner, attempt, deadline_at) VALUES (${left}::uuid, NULL, 0, NULL, 0, '1970-01-01T00:00:02Z')`
      yield* advance("5 seconds")
      const [row] = yield* eventually(
        sql`SELECT status, error ->> 'code' AS code FROM tasks WHERE id = ${left}::uuid`,
        ([found]) => found?.["status"] === "failed"
      )
      assert.deepStrictEqual(row, { status: "failed", code: "4005" })
      assert.strictEqual(late.submits.length, 1, "only the first task")
    }).pipe(Effect.provide(layerGateway({ vendor: late.account })))
  )

  const outlived = vendor(() => images)
  const slowPoll = {
    ...outlived.account,
    poll: () => Effect.delay(outlived.account.poll(), "1 minute")
  }
  it.effect("is not taken from its process by a rescue after the store was unreachable", () =>
    Effect.gen(function* () {
      const { get, id } = yield* create
      const sql = yield* SqlClient.SqlClient
      yield* eventually(get, () => outlived.submits.length === 1)
      yield* advance("20 seconds")
      // No heartbeat is written for 20 seconds, and a rescue comes before the next one
      yield* sql`ALTER TABLE processes RENAME TO processes_away`
      const process = yield* Process
      assert.isTrue(process.isAlive())
      yield* advance("20 seconds")
      assert.isFalse(process.isAlive())
      yield* sql`ALTER TABLE processes_away RENAME TO processes`
      yield* (yield* Rescuer).rescue
      const other =
        yield* sql`SELECT epoch, owner IS NOT NULL AS owned FROM runs WHERE task_id = ${id}`
      assert.deepStrictEqual(other, [{ epoch: 2, owned: true }])
      yield* advance("30 seconds")
      yield* eventually(get, (it) => it.json.task_info.status === "completed")
    }).pipe(Effect.provide(layerGateway({ vendor: slowPoll })))
  )

  const wordy = vendor(
    () => images,
    () => new VendorError({ class: "CONTENT", message: "not \u0000 this" })
  )
  it.effect(
    "keeps its vendor's message without the control characters that the store refuses",
    () =>
      Effect.gen(function* () {
        const { get } = yield* create
        const failed = yield* eventually(get, (it) => it.json.task_info.status === "failed")
        const { code, detail } = failed.json.task_info.error
        assert.deepStrictEqual([code, detail], [3001, "not this"])
      }).pipe(Effect.provide(layerGateway({ vendor: wordy.account })))
  )

  const throttled = new VendorError({ class: "RATE_LIMITED", message: "slow down" })
  const refusing = vendor(
    () => images,
    () => throttled
  )
  it.effect("is submitted six times at most while the vendor throttles, then fails with 3002", () =>
    Effect.gen(function* () {
      const { get } = yield* create
      yield* eventually(get, () => refusing.submits.length === 1)
      yield* advance("60 seconds")
      assert.deepStrictEqual(refusing.submits, [0, 1, 3, 7, 15, 31])
      assert.strictEqual((yield* get).json.task_info.error.code, 3002)
    }).pipe(Effect.provide(layerGateway({ vendor: refusing.account })))
  )

  const exhausted = vendor(
    () => images,
    () =>
      new VendorError({ class: "RATE_LIMITED", message: "daily quota", retryAfterMillis: 7.2e6 })
  )
  it.effect("fails with 3002 at once if the vendor's wait would outlast its deadline", () =>
    Effect.gen(function* () {
      const { get } = yield* create
      const task = yield* eventually(get, (it) => it.json.task_info.status === "failed")
      assert.strictEqual(task.json.task_info.error.code, 3002)
      assert.deepStrictEqual(exhausted.submits, [0])
    }).pipe(Effect.provide(layerGateway({ vendor: exhausted.account })))
  )
})
