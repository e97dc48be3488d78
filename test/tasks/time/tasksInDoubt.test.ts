import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { markStore } from "../../../src/db/StoreMark.ts"
import type { ListedJob, Progress, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

/** docs/standbys.md#tasks-in-doubt: a task whose submit the store lost is not submitted a second time. */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const image: Progress = {
  _tag: "Done",
  result: { items: [{ _tag: "Bytes", bytes: new Uint8Array([1]), mime: "image/png" }] }
}
const promptOf = ({ body }: SubmitRequest) => (body as { prompt: string }).prompt

interface Options {
  /** How long a submit takes until its job exists. */
  readonly submit?: Duration.Input
  /** How far the vendor's clock is ahead of the gateway's. */
  readonly skew?: Duration.Input
}

const millisOf = (input: Duration.Input = 0) => Duration.toMillis(Duration.fromInputUnsafe(input))

const makeVendor = ({ skew, submit }: Options) => {
  const jobs: Array<{ readonly prompt: string; readonly at: number }> = []
  const submits: Array<string> = []
  const vendor = {
    submit: (request: SubmitRequest) =>
      Effect.gen(function* () {
        submits.push(promptOf(request))
        yield* Effect.sleep(millisOf(submit))
        jobs.push({ prompt: promptOf(request), at: yield* Clock.currentTimeMillis })
        return {
          _tag: "Accepted",
          handle: { jobId: `job ${jobs.length - 1}` },
          pollAfter: Duration.seconds(3)
        } as const
      }),
    poll: () => Effect.succeed(image),
    cancel: () => Effect.succeed("Canceled" as const),
    list: ({ from, until }: { readonly from: number; readonly until: number }) =>
      Effect.sync(() =>
        jobs.flatMap(({ at, prompt }, n): ReadonlyArray<ListedJob> => {
          const jobId = `job ${n}`
          const createdAtMillis = at + millisOf(skew)
          if (createdAtMillis < from || createdAtMillis > until) return []
          const compare: ListedJob["compare"] = (request) =>
            promptOf(request) === prompt ? "same" : "other"
          return [{ jobId, createdAtMillis, handle: () => ({ jobId }), compare }]
        })
      )
  }
  return { layer: layerGateway({ vendor }), jobs, submits }
}

const mark = (allowsSubmits = false) =>
  Effect.flatMap(DateTime.now, (now) => markStore({ by: "test", now, allowsSubmits }))

/** The store loses the submit of its only task, which was created five minutes ago, and is marked as restored. */
const loseSubmit = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const at = DateTime.toDateUtc(DateTime.subtract(yield* DateTime.now, { minutes: 5 }))
  yield* sql`DELETE FROM vendor_attempts`
  yield* sql`UPDATE tasks SET status = 'pending', started_at = NULL, created_at = ${at}`
  yield* sql`
    UPDATE runs r SET attempt = 0, queue = t.vendor || '/' || t.model || '/submits', due_at = ${at}
    FROM tasks t WHERE t.id = r.task_id`
  yield* mark()
})

const save = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE saved_attempts AS SELECT * FROM vendor_attempts`
  yield* sql`CREATE TABLE saved_runs AS SELECT * FROM runs`
})

/** The store goes back to when it was saved, and is marked again. */
const goBack = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`DELETE FROM vendor_attempts`
  yield* sql`INSERT INTO vendor_attempts SELECT * FROM saved_attempts`
  yield* sql`DELETE FROM runs`
  yield* sql`INSERT INTO runs SELECT * FROM saved_runs`
  yield* mark()
})

const advanceUntil = (isThere: () => boolean) =>
  Effect.repeat(advance("1 second"), { until: isThere, times: 200 })

const createTask = Effect.gen(function* () {
  const user = yield* makeUser()
  const { json } = yield* user.call("POST", path, { prompt: "a" })
  const id: string = json.task_info.id
  const state = Effect.map(
    user.call("GET", `${path}/${id}`),
    (it) => (it.json.task_info.error?.code ?? it.json.task_info.status) as number | string
  )
  /** The end of the task, and the number of seconds until then. */
  const outcome = Effect.gen(function* () {
    for (let seconds = 0; seconds < 200; seconds += 1) {
      const now = yield* state
      if (now !== "pending" && now !== "processing") return { state: now, seconds }
      yield* advance("1 second")
    }
    throw new Error(`the task is still ${yield* state}`)
  })
  return { outcome }
})

/** A task whose submit the store and the vendor lost. */
const taskWithoutJob = Effect.fnUntraced(function* (jobs: Array<unknown>) {
  const task = yield* createTask
  yield* advanceUntil(() => jobs.length === 1)
  jobs.length = 0
  yield* loseSubmit
  return task
})

describe("a task whose submit the store lost", () => {
  it.effect("gets the job that a still running submit created", () => {
    const { layer, submits } = makeVendor({ submit: "40 seconds" })
    return Effect.gen(function* () {
      const { outcome } = yield* createTask
      yield* advanceUntil(() => submits.length === 1)
      yield* advance("2 seconds")
      yield* loseSubmit
      assert.strictEqual((yield* outcome).state, "completed")
      assert.strictEqual(submits.length, 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("fails with 3004 and is not submitted again if the vendor's clock is slow", () => {
    const { jobs, layer, submits } = makeVendor({ skew: "-330 seconds" })
    return Effect.gen(function* () {
      const { outcome } = yield* createTask
      yield* advanceUntil(() => jobs.length === 1)
      yield* loseSubmit
      assert.strictEqual((yield* outcome).state, 3004)
      assert.strictEqual(submits.length, 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("is submitted again if there is no job, once no submit can still be running", () => {
    const { jobs, layer, submits } = makeVendor({})
    return Effect.gen(function* () {
      const { outcome } = yield* taskWithoutJob(jobs)
      const { seconds, state } = yield* outcome
      assert.strictEqual(state, "completed")
      assert.strictEqual(submits.length, 2)
      assert.isAtLeast(seconds, 70)
    }).pipe(Effect.provide(layer))
  })

  it.effect("is submitted before the end of the search once the operator allows submits", () => {
    const { jobs, layer, submits } = makeVendor({})
    return Effect.gen(function* () {
      const { outcome } = yield* taskWithoutJob(jobs)
      yield* advance("8 seconds")
      yield* mark(true)
      yield* advance("15 seconds")
      yield* eventually(
        Effect.sync(() => submits.length),
        (count) => count === 2
      )
      assert.strictEqual((yield* outcome).state, "completed")
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "gets the job of its next submit if the store goes back to the time of the doubt",
    () => {
      const { jobs, layer, submits } = makeVendor({ submit: "20 seconds" })
      return Effect.gen(function* () {
        const { outcome } = yield* taskWithoutJob(jobs)
        yield* advance("8 seconds")
        yield* save
        yield* advanceUntil(() => jobs.length === 1)
        yield* goBack
        assert.strictEqual((yield* outcome).state, "completed")
        assert.strictEqual(submits.length, 2)
      }).pipe(Effect.provide(layer))
    }
  )
})
