import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import type { UrlItem } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#results-of-vendors, ADR 0255 */

const path = "/vendors/alibaba/v1/text-to-image-preview/generation"

const gone = new VendorError({ class: "LOST", message: "HTTP 404", httpStatus: 404 })
const disturbed = new VendorError({ class: "RETRYABLE", message: "HTTP 503", httpStatus: 503 })

/** A task with three pictures for 9 credits, at a vendor with this download failure. */
const threePictures = (
  failureOf: (name: string) => VendorError | undefined,
  deadline = "1 hour"
) => {
  const tries: Array<string> = []
  const item = (name: string): UrlItem => ({
    _tag: "Url",
    url: `https://vendor.test/${name}`,
    mime: "image/png",
    needsAuth: true
  })
  const vendor = {
    submit: () =>
      Effect.succeed({
        _tag: "Done" as const,
        result: { items: ["one", "two", "three"].map(item) }
      }),
    download: ({ url }: UrlItem) =>
      Effect.suspend(() => {
        const name = url.split("/").at(-1) ?? ""
        tries.push(name)
        const failure = failureOf(name)
        return failure === undefined
          ? Effect.succeedSome({ mime: "image/png", stream: Stream.succeed(pixel) })
          : Effect.fail(failure)
      })
  }
  const task = Effect.gen(function* () {
    const user = yield* makeUser()
    const created = yield* user.call("POST", path, { prompt: "x", n: 3 })
    assert.strictEqual(created.status, 202, created.text)
    const get = user.call("GET", `${path}/${created.json.task_info.id}`)
    const wallet = Effect.map(user.call("GET", "/manage/v1/wallet"), ({ json }) => [
      json.settled_balance as string,
      json.held_balance as string
    ])
    // Storing takes real time, at most this many seconds
    const ended = eventually(Effect.andThen(advance("1 second"), get), ({ json }) =>
      /completed|failed/u.test(json.task_info.status)
    )
    return {
      wallet,
      now: Effect.map(get, ({ json }) => json),
      ended: Effect.map(ended, ({ json }) => json)
    }
  })
  return { tries, task, layer: layerGateway({ vendor, env: { TASK_DEADLINE: deadline } }) }
}

const triesOf = (tries: ReadonlyArray<string>, name: string) =>
  tries.filter((it) => it === name).length

describe("a result of several that cannot be copied", () => {
  it.effect("is left out and not charged, and the others are delivered", () => {
    const { layer, task, tries } = threePictures((name) => (name === "two" ? gone : undefined))
    return Effect.gen(function* () {
      const { ended, wallet } = yield* task
      const { images, task_info } = yield* ended
      assert.strictEqual(task_info.status, "completed")
      assert.lengthOf(images, 2)
      assert.deepStrictEqual(yield* wallet, ["994.00", "0.00"])
      assert.strictEqual(triesOf(tries, "two"), 4)
      assert.strictEqual(triesOf(tries, "three"), 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("fails the task if no other is left, and nothing is charged", () => {
    const { layer, task } = threePictures(() => gone)
    return Effect.gen(function* () {
      const { ended, wallet } = yield* task
      const { images, task_info } = yield* ended
      assert.strictEqual(task_info.error.code, 3004)
      assert.isUndefined(images)
      assert.deepStrictEqual(yield* wallet, ["1000.00", "0.00"])
    }).pipe(Effect.provide(layer))
  })

  it.effect("is waited for while its host fails temporarily", () => {
    let isDisturbed = true
    const { layer, task } = threePictures(() => (isDisturbed ? disturbed : undefined))
    return Effect.gen(function* () {
      const { ended, now, wallet } = yield* task
      yield* advance("45 seconds", "5 seconds")
      assert.strictEqual((yield* now).task_info.status, "processing")
      assert.deepStrictEqual(yield* wallet, ["1000.00", "9.00"])
      isDisturbed = false
      assert.lengthOf((yield* ended).images, 3)
      assert.deepStrictEqual(yield* wallet, ["991.00", "0.00"])
    }).pipe(Effect.provide(layer))
  })

  for (const [deadline, seconds] of [
    ["1 hour", 60],
    ["100 seconds", 40]
  ] as const) {
    it.effect(`is given up after ${seconds} seconds with a deadline of ${deadline}`, () => {
      const { layer, task } = threePictures(
        (name) => (name === "one" ? undefined : disturbed),
        deadline
      )
      return Effect.gen(function* () {
        const { ended, now, wallet } = yield* task
        yield* advance(`${seconds - 20} seconds`, "5 seconds")
        assert.strictEqual((yield* now).task_info.status, "processing")
        assert.lengthOf((yield* ended).images, 1)
        assert.deepStrictEqual(yield* wallet, ["997.00", "0.00"])
      }).pipe(Effect.provide(layer))
    })
  }
})
