import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { AppConfig } from "../../../src/config/Config.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

/** A vendor whose response contains the picture, which must be stored before anything is recorded. */
const blocking = {
  submit: () =>
    Effect.succeed({
      _tag: "Done" as const,
      result: {
        items: [{ _tag: "Bytes" as const, bytes: new Uint8Array([1, 2, 3]), mime: "image/png" }]
      }
    })
}

describe("an artifact store that is unavailable for longer than the task's deadline", () => {
  it.effect("keeps no hold open: the task fails at its deadline, which releases its hold", () =>
    Effect.gen(function* () {
      const { dataDir } = yield* AppConfig
      const folder = join(dataDir, "artifacts")
      rmSync(folder, { recursive: true })
      writeFileSync(folder, "in its place")
      const user = yield* makeUser()
      const created = yield* user.call("POST", path, { prompt: "A lighthouse" })
      const task = user.call("GET", `${path}/${created.json.task_info.id}`)
      const held = Effect.map(
        user.call("GET", "/manage/v1/wallet"),
        ({ json }) => json.held_balance
      )
      yield* advance("9 minutes", "30 seconds")
      assert.strictEqual((yield* task).json.task_info.status, "processing")
      assert.strictEqual(yield* held, "7.50")
      yield* advance("90 seconds", "5 seconds")
      const ended = yield* eventually(task, ({ json }) => json.task_info.status === "failed")
      assert.strictEqual(ended.json.task_info.error.code, 4005)
      assert.strictEqual(yield* held, "0.00")
    }).pipe(
      Effect.provide(layerGateway({ vendor: blocking, env: { TASK_DEADLINE: "10 minutes" } }))
    )
  )
})
