import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { advance, eventually, layerGateway, makeUser } from "../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

describe("a task in the time of a test", () => {
  it.effect("is pending, processing and then completed with its images", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const created = yield* user.call("POST", path, { prompt: "A lighthouse" })
      assert.strictEqual(created.status, 202, created.text)
      const task = `${path}/${created.json.task_info.id}`
      yield* eventually(user.call("GET", task), (it) => it.json.task_info.status === "processing")
      yield* advance("5 seconds")
      const done = yield* eventually(
        user.call("GET", task),
        (it) => it.json.task_info.status === "completed"
      )
      assert.strictEqual(done.json.images.length, 1)
    }).pipe(Effect.provide(layerGateway()))
  )
})
