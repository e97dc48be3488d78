import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Ref } from "effect"
import { TestClock } from "effect/testing"
import { decode } from "fast-png"
import { make } from "../../../src/sandbox/Simulator.ts"
import type { Simulator, SimulatorOptions } from "../../../src/sandbox/Simulator.ts"
import type { Handle, SubmitRequest } from "../../../src/vendors/VendorClient.ts"
import { request, taskId } from "./support.ts"

/** A submit that must be accepted. */
const accepted = Effect.fnUntraced(function* (
  body: SubmitRequest["body"],
  model = "text-to-image-max",
  options: SimulatorOptions = {}
) {
  const simulator = yield* make(options)
  const submitted = yield* simulator.account.submit({ ...request(model, {}), body })
  if (submitted._tag !== "Accepted") return yield* Effect.die("not accepted")
  return { ...simulator, ...submitted }
})

/** The media of a job, polled by a simulator that never saw its submit. */
const finished = Effect.fnUntraced(function* (handle: Handle) {
  const { account } = yield* make()
  yield* TestClock.adjust("6 seconds")
  const progress = yield* account.poll(handle)
  if (progress._tag !== "Done") return yield* Effect.die("not done")
  return progress.result.items.map((item) => {
    if (item._tag !== "Bytes") throw new Error("no bytes")
    return item
  })
})

const sizes = Effect.fnUntraced(function* (model: string, body: Readonly<Record<string, unknown>>) {
  const { handle } = yield* accepted({ prompt: "A fox", ...body }, model)
  const items = yield* finished(handle)
  return items.map(({ bytes, mime }) => {
    assert.strictEqual(mime, "image/png")
    const { height, width } = decode(bytes)
    return `${width}x${height}`
  })
})

const submitFailure = Effect.fnUntraced(function* (prompt: string) {
  const simulator = yield* make()
  const error = yield* simulator.account
    .submit(request("text-to-image-max", { prompt }))
    .pipe(Effect.flip)
  return { class: error.class, paid: yield* simulator.paidSubmits(taskId) }
})

const pollFailure = Effect.fnUntraced(function* (prompt: string) {
  const { account, handle } = yield* accepted({ prompt })
  assert.strictEqual((yield* account.poll(handle))._tag, "Running")
  yield* TestClock.adjust("6 seconds")
  return (yield* Effect.flip(account.poll(handle))).class
})

describe("Simulator: delays", () => {
  it.effect("a job runs until its delay is over, and says when to poll again", () =>
    Effect.gen(function* () {
      const delay = { min: "2500 millis", max: "2500 millis" } as const
      const { account, handle, pollAfter } = yield* accepted({ prompt: "A fox" }, undefined, {
        delay
      })
      assert.strictEqual(Duration.toMillis(pollAfter), 1000)
      const waits: Array<number> = []
      for (const _ of [1, 2, 3]) {
        const progress = yield* account.poll(handle)
        if (progress._tag !== "Running") return yield* Effect.die("not running")
        waits.push(Duration.toMillis(progress.pollAfter))
        yield* TestClock.adjust(progress.pollAfter)
      }
      assert.deepStrictEqual(waits, [1000, 1000, 500])
      assert.strictEqual((yield* account.poll(handle))._tag, "Done")
    })
  )

  it.effect("delays lie between 2 and 6 seconds, differ by task, and are repeatable", () =>
    Effect.gen(function* () {
      const { account } = yield* make()
      const delays = Effect.forEach(
        Array.from({ length: 200 }, (_, index) => `${taskId}${index}`),
        (id) =>
          account
            .submit(request("text-to-image-max", { prompt: "A fox" }, id))
            .pipe(
              Effect.map((it) => (it._tag === "Accepted" ? Number(it.handle["delayMillis"]) : 0))
            )
      )
      const first = yield* delays
      assert.isAtLeast(Math.min(...first), 2000)
      assert.isAtMost(Math.max(...first), 6000)
      assert.isAbove(Math.max(...first) - Math.min(...first), 3000)
      assert.deepStrictEqual(yield* delays, first)
    })
  )

  it.effect("slow sets the delay", () =>
    Effect.gen(function* () {
      const { account, handle } = yield* accepted({ prompt: "A fox [[sim:slow=30s]]" })
      yield* TestClock.adjust("29999 millis")
      assert.strictEqual((yield* account.poll(handle))._tag, "Running")
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* account.poll(handle))._tag, "Done")
    })
  )

  it.effect("hang runs forever", () =>
    Effect.gen(function* () {
      const { account, handle } = yield* accepted({ prompt: "A fox [[sim:hang]]" })
      yield* TestClock.adjust("2 days")
      const progress = yield* account.poll(handle)
      assert.deepStrictEqual(progress, { _tag: "Running", pollAfter: Duration.seconds(1) })
      assert.strictEqual(yield* account.cancel(handle), "Canceled")
    })
  )
})

describe("Simulator: media", () => {
  it.effect("the handle outlives the process as JSON, and contains no media", () =>
    Effect.gen(function* () {
      const image = `data:image/png;base64,${"A".repeat(1_000_000)}`
      const prompt = "龍".repeat(10_000)
      const { handle } = yield* accepted({ prompt, images: [image] }, "image-edit-pro")
      const text = JSON.stringify(handle)
      assert.isBelow(text.length, 4000)
      const [again, first] = [yield* finished(JSON.parse(text)), yield* finished(handle)]
      assert.deepStrictEqual(again, first)
    })
  )

  it.effect("each model makes images in its size and number", () =>
    Effect.gen(function* () {
      const four = (size: string) => [size, size, size, size]
      assert.deepStrictEqual(yield* sizes("text-to-image-max", { size: "928*1664" }), ["928x1664"])
      assert.deepStrictEqual(yield* sizes("image-edit", { size: null }), four("1280x1280"))
      assert.deepStrictEqual(yield* sizes("image-edit", { size: "900*800", n: 2 }), [
        "900x800",
        "900x800"
      ])
      const pro = { aspect_ratio: "16:9", resolution: "1K" }
      assert.deepStrictEqual(yield* sizes("image-edit-pro", pro), ["1024x576"])
      const wide = { aspect_ratio: "21:9", resolution: "2K" }
      assert.deepStrictEqual(yield* sizes("image-edit-pro", wide), ["2048x878"])
      assert.deepStrictEqual(yield* sizes("image-edit-max", {}), ["1024x1024"])
      assert.deepStrictEqual(yield* sizes("text-to-image-preview", { n: 1 }), ["1280x1280"])
    })
  )

  it.effect("the images of one task differ", () =>
    Effect.gen(function* () {
      const { handle } = yield* accepted({ prompt: "A fox", size: "768*768", n: 4 }, "image-edit")
      const items = yield* finished(handle)
      const distinct = new Set(items.map(({ bytes }) => Buffer.from(bytes).toString("base64")))
      assert.strictEqual(distinct.size, 4)
    })
  )

  it.effect("each video model has its size, length, frame rate and sound", () =>
    Effect.gen(function* () {
      const plans = yield* Effect.forEach(
        [
          ["text-to-video-spark", { size: "1088*832", duration: 10, audio: true }],
          ["text-to-video-spark", { size: "1280*720", audio: false }],
          ["keyframe-to-video-plus", { resolution: "720P", duration: 5 }],
          ["image-to-video-spark", { resolution: "1080P", audio: null }],
          ["video-edit-plus", { size: "832*1088" }]
        ] as const,
        ([model, body]) =>
          accepted({ prompt: "A fox", seed: 7, ...body }, model).pipe(
            Effect.map(({ handle }) => handle["plan"])
          )
      )
      const video = { kind: "videos", prompt: "A fox", count: 1, seed: 7, seconds: 5 }
      const size = { width: 1280, height: 720 }
      assert.deepStrictEqual(plans, [
        {
          ...video,
          seconds: 10,
          width: 1088,
          height: 832,
          framesPerSecond: 24,
          hasSound: true
        },
        { ...video, ...size, framesPerSecond: 24, hasSound: false },
        { ...video, ...size, framesPerSecond: 30, hasSound: false },
        { ...video, width: 1920, height: 1080, framesPerSecond: 24, hasSound: true },
        { ...video, width: 832, height: 1088, framesPerSecond: 24, hasSound: false }
      ])
      const { handle } = yield* accepted({ prompt: "A fox" }, "keyframe-to-video-plus")
      const [item] = yield* finished(handle)
      assert.strictEqual(item!.mime, "video/mp4")
      assert.strictEqual(Buffer.from(item!.bytes).toString("latin1", 4, 8), "ftyp")
    })
  )

  it.effect("without a seed the task id is the seed", () =>
    Effect.gen(function* () {
      const { account } = yield* make()
      const seed = (id: string) =>
        account
          .submit(request("text-to-image-max", { prompt: "A fox" }, id))
          .pipe(Effect.map((it) => (it._tag === "Accepted" ? it.handle["plan"] : null)))
      assert.deepStrictEqual(yield* seed("a"), yield* seed("a"))
      assert.notDeepEqual(yield* seed("a"), yield* seed("b"))
    })
  )

  it.effect("partial makes only the given number of the requested images", () =>
    Effect.gen(function* () {
      const body = { prompt: "A fox [[sim:partial=1]]", size: "768*768", n: 4 }
      const { handle } = yield* accepted(body, "image-edit")
      const whole = yield* accepted({ ...body, prompt: "A fox" }, "image-edit")
      const [only, ...rest] = yield* finished(handle)
      assert.lengthOf(rest, 0)
      assert.deepStrictEqual(only, (yield* finished(whole.handle))[0])
    })
  )
})

describe("Simulator: failures", () => {
  it.effect("refused submits create no job, but a lost one does", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* Effect.forEach(
          [
            "[[sim:refuse]]",
            "[[sim:media]]",
            "[[sim:operator]]",
            "[[sim:429=1]]",
            "[[sim:503=1]]",
            "[[sim:unknown]]",
            "[[sim:lost-submit]]"
          ],
          submitFailure
        ),
        [
          { class: "CONTENT", paid: 0 },
          { class: "MEDIA", paid: 0 },
          { class: "OPERATOR", paid: 0 },
          { class: "RATE_LIMITED", paid: 0 },
          { class: "RETRYABLE", paid: 0 },
          { class: "FATAL_CLIENT", paid: 0 },
          { class: "AMBIGUOUS", paid: 1 }
        ]
      )
    })
  )

  it.effect("429 refuses the given number of submits of each task, and accepts the next one", () =>
    Effect.gen(function* () {
      const { account, paidSubmits } = yield* make()
      const submit = (id: string) =>
        account
          .submit(request("text-to-image-max", { prompt: "A fox [[sim:429=2]] [[sim:503=1]]" }, id))
          .pipe(
            Effect.map((it) => it._tag),
            Effect.catch((error) => Effect.succeed(error.retryAfterMillis ?? error.httpStatus))
          )
      const four = Effect.forEach([1, 2, 3, 4], () => submit("a"))
      assert.deepStrictEqual(yield* four, [1000, 1000, 503, "Accepted"])
      assert.strictEqual(yield* submit("b"), 1000)
      assert.deepStrictEqual([yield* paidSubmits("a"), yield* paidSubmits("b")], [1, 0])
    })
  )

  it.effect("a job fails at the end of its delay", () =>
    Effect.gen(function* () {
      const prompts = ["[[sim:fail]]", "[[sim:timeout]]", "[[sim:lost]]"]
      assert.deepStrictEqual(yield* Effect.forEach(prompts, pollFailure), [
        "FAILED",
        "TIMEOUT",
        "LOST"
      ])
    })
  )

  it.effect("crash runs before or after the job is created, and does nothing by default", () =>
    Effect.gen(function* () {
      const paidAtCrash = yield* Ref.make<ReadonlyArray<number>>([])
      const simulator: Simulator = yield* make({
        crash: Effect.suspend(() =>
          Effect.flatMap(simulator.paidSubmits(taskId), (paid) =>
            Ref.update(paidAtCrash, (all) => [...all, paid])
          )
        )
      })
      for (const point of ["before-submit", "after-submit"]) {
        const prompt = `A fox [[sim:crash=${point}]]`
        yield* simulator.account.submit(request("text-to-image-max", { prompt }))
      }
      assert.deepStrictEqual(yield* Ref.get(paidAtCrash), [0, 2])
      yield* accepted({ prompt: "A fox [[sim:crash=before-submit]]" })
    })
  )

  it.effect("a job can be cancelled until it is done", () =>
    Effect.gen(function* () {
      const { account, handle } = yield* accepted({ prompt: "A fox" })
      assert.strictEqual(yield* account.cancel(handle), "Canceled")
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual(yield* account.cancel(handle), "TooLate")
    })
  )

  it.effect("a handle of another vendor is lost, and an invalid body is refused", () =>
    Effect.gen(function* () {
      const { account } = yield* make()
      assert.strictEqual((yield* Effect.flip(account.poll({ id: "x" }))).class, "LOST")
      const submitted = account.submit(request("text-to-image-max", { prompt: 1 }))
      assert.strictEqual((yield* Effect.flip(submitted)).class, "FATAL_CLIENT")
    })
  )
})
