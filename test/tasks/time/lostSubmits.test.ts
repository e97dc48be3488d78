import { assert, describe, it } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { ListedJob, Progress, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

/** docs/reference/vendors.md#reconciliation, ADR 0194: submits whose responses were lost in a living process. */

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

const image: Progress = {
  _tag: "Done",
  result: { items: [{ _tag: "Bytes", bytes: new Uint8Array([1]), mime: "image/png" }] }
}
const lost = new VendorError({ class: "AMBIGUOUS", message: "The connection broke" })
const busy = new VendorError({ class: "RETRYABLE", message: "busy" })

interface Job {
  readonly prompt: string
  readonly at: number
}

const promptOf = ({ body }: SubmitRequest) => (body as { prompt: string }).prompt

/** A vendor that loses the response to each submit; `free` submits buy nothing. */
const losingVendor = (options: {
  readonly isBought?: (prompt: string) => boolean
  /** Which jobs the n-th list shows. */
  readonly shown?: (list: number) => "all" | "none" | VendorError
  /** The list has no prompts; from this list on a job's record has one. */
  readonly readableFrom?: number
  /** How long the first list takes. It shows the jobs as they were when it was requested. */
  readonly firstTakes?: Duration.Input
}) => {
  const jobs: Array<Job> = []
  const submits: Array<string> = []
  const polled: Array<string> = []
  const lists: Array<number> = []
  const { firstTakes, isBought = () => true, readableFrom, shown = () => "all" } = options

  const listed = (job: Job, n: number, isShown: boolean): ListedJob => {
    const jobId = `job ${n}`
    const { read, ...rest }: ListedJob = {
      jobId,
      createdAtMillis: job.at,
      handle: () => ({ jobId, prompt: job.prompt }),
      compare: (request) =>
        !isShown ? "open" : promptOf(request) === job.prompt ? "same" : "other",
      read: Effect.suspend(() =>
        Effect.succeed(listed(job, n, lists.length >= (readableFrom ?? 0)))
      )
    }
    return isShown || read === undefined ? rest : { ...rest, read }
  }

  const vendor = {
    submit: (request: SubmitRequest) =>
      Effect.gen(function* () {
        const prompt = promptOf(request)
        submits.push(prompt)
        if (isBought(prompt)) jobs.push({ prompt, at: yield* Clock.currentTimeMillis })
        return yield* lost
      }),
    poll: (handle: object) =>
      Effect.sync(() => {
        polled.push((handle as { prompt: string }).prompt)
        return image
      }),
    cancel: () => Effect.succeed("Canceled" as const),
    list: () =>
      Effect.gen(function* () {
        lists.push(yield* Clock.currentTimeMillis)
        const what = shown(lists.length)
        if (firstTakes !== undefined && lists.length === 1) yield* Effect.sleep(firstTakes)
        if (what instanceof VendorError) return yield* what
        return what === "none"
          ? []
          : jobs.map((job, n) => listed(job, n, readableFrom === undefined))
      })
  }
  return { layer: layerGateway({ vendor }), lists, submits, polled }
}

const ordered = Effect.fnUntraced(function* (prompts: ReadonlyArray<string>) {
  const user = yield* makeUser()
  const created = yield* Effect.forEach(prompts, (prompt) => user.call("POST", path, { prompt }))
  const ids = created.map(({ json, status, text }) => {
    assert.strictEqual(status, 202, text)
    return json.task_info.id as string
  })
  const ends = Effect.forEach(ids, (id) =>
    Effect.map(
      user.call("GET", `${path}/${id}`),
      ({ json }) => (json.task_info.error?.code ?? json.task_info.status) as number | string
    )
  )
  const held = Effect.map(
    user.call("GET", "/manage/v1/wallet"),
    ({ json }) => json.held_balance as string
  )
  return { ends, held }
})

const areOver = (ends: ReadonlyArray<number | string>) =>
  ends.every((it) => it !== "processing" && it !== "pending")

/**
 * The scheduler collects tasks in real time, for at most 25 ms. Waits until all due and free tasks are claimed before
 * the clock advances, even on a busy machine. Some may stay due, because they wait for a slot.
 */
const taken = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const now = DateTime.toDateUtc(yield* DateTime.now)
  const moment = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
  const due = sql`SELECT 1 FROM runs WHERE owner IS NULL AND due_at <= ${now}`
  yield* Effect.repeat(Effect.andThen(moment, due), {
    until: (rows) => rows.length === 0,
    times: 6
  })
})

/** The outcomes of the tasks, and the number of seconds until all had ended. */
const outcome = Effect.fnUntraced(function* (
  prompts: ReadonlyArray<string>,
  within: Duration.Input = "30 seconds"
) {
  const { ends, held } = yield* ordered(prompts)
  const began = yield* Clock.currentTimeMillis
  const until = began + Duration.toMillis(Duration.fromInputUnsafe(within))
  while (!areOver(yield* ends) && (yield* Clock.currentTimeMillis) < until) {
    yield* advance("1 second")
    yield* taken
  }
  const seconds = ((yield* Clock.currentTimeMillis) - began) / 1000
  const all = yield* eventually(ends, areOver)
  assert.strictEqual(yield* held, "0.00")
  return { ends: all, seconds }
})

const prompts = Array.from({ length: 20 }, (_, n) => `prompt ${n}`)

describe("submits whose responses were lost", () => {
  it.effect("are all found in one list, and each task gets its own job", () => {
    const { layer, lists, polled, submits } = losingVendor({})
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(prompts)
      assert.deepStrictEqual(new Set(ends), new Set(["completed"]))
      assert.sameMembers(polled, prompts)
      assert.sameMembers(submits, prompts)
      assert.isAtMost(lists.length, 1 + Math.ceil(seconds / 5))
      assert.isAtMost(seconds, 10)
    }).pipe(Effect.provide(layer))
  })

  it.effect("fail with 3004 after 10 s if they bought nothing, and delay no other", () => {
    const isBought = (prompt: string) => prompt === "prompt 7"
    const { layer, lists, polled, submits } = losingVendor({ isBought })
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(prompts)
      assert.deepStrictEqual(
        ends,
        prompts.map((it) => (isBought(it) ? "completed" : 3004))
      )
      assert.deepStrictEqual(polled, ["prompt 7"])
      assert.strictEqual(submits.length, 20)
      assert.isAtLeast(seconds, 10)
      assert.isAtMost(seconds, 20)
      assert.isAtMost(lists.length, 1 + Math.ceil(seconds / 5))
    }).pipe(Effect.provide(layer))
  })

  it.effect("are searched for again if the list shows jobs late or is briefly unavailable", () => {
    const { layer, lists } = losingVendor({
      shown: (list) => (list === 1 ? "none" : list < 6 ? busy : "all")
    })
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(["a", "b"], "1 minute")
      assert.deepStrictEqual(ends, ["completed", "completed"])
      assert.isAtMost(seconds, 32)
      assert.isAtMost(lists.length, 1 + Math.ceil(seconds / 5))
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "are searched for again after a slow list, because it may show an earlier state",
    () => {
      const { layer, submits } = losingVendor({
        firstTakes: "15 seconds",
        shown: (list) => (list === 1 ? "none" : "all")
      })
      return Effect.gen(function* () {
        const { ends } = yield* outcome(["a"], "1 minute")
        assert.deepStrictEqual(ends, ["completed"])
        assert.deepStrictEqual(submits, ["a"])
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("fail with 3004 if the list is refused", () => {
    const refusal = new VendorError({ class: "OPERATOR", message: "no", httpStatus: 403 })
    const { layer } = losingVendor({ shown: () => refusal })
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(["a"])
      assert.deepStrictEqual(ends, [3004])
      assert.isAtMost(seconds, 20)
    }).pipe(Effect.provide(layer))
  })

  it.effect("both fail with 3004 if two have the same request and only one job exists", () => {
    const { layer, polled, submits } = losingVendor({ isBought: () => submits.length === 1 })
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(["same", "same"], "2 minutes")
      assert.deepStrictEqual(ends, [3004, 3004])
      assert.deepStrictEqual(polled, [])
      assert.strictEqual(submits.length, 2)
      assert.isAtMost(seconds, 90)
    }).pipe(Effect.provide(layer))
  })

  it.effect("are found once their jobs have ended, if jobs show their requests only then", () => {
    const { layer, polled } = losingVendor({ readableFrom: 5 })
    return Effect.gen(function* () {
      const { ends, seconds } = yield* outcome(["a", "b", "c"], "2 minutes")
      assert.deepStrictEqual(ends, ["completed", "completed", "completed"])
      assert.sameMembers(polled, ["a", "b", "c"])
      assert.isAtMost(seconds, 40)
    }).pipe(Effect.provide(layer))
  })
})
