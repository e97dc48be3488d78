import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { CurrentOpenResponses, OpenResponses } from "../../../src/process/OpenResponses.ts"
import { advance, GatewayHttp, layerGateway, makeUser } from "../../support/gateway.ts"
import { failTool } from "../../support/mcp.ts"
import { startedDatabase } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const hung = { prompt: "[[sim:hang]]" }

/** At most two for a single user. */
const open = new OpenResponses(8)
const gateway = layerGateway({ database: startedDatabase }).pipe(
  Layer.provide(Layer.succeed(CurrentOpenResponses, open))
)

/** docs/reference/keys-and-limits.md#shares */
layer(gateway, { timeout: "60 seconds" })("streams of tasks, and requests that wait", (it) => {
  it.effect(
    "are limited to a share for each user, and other users are served when one has used it up",
    () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const other = yield* makeUser()
        const http = yield* GatewayHttp
        const created = (yield* user.call("POST", path, hung)).json.task_info
        const task = `${path}/${created.id}`
        const waits = yield* Effect.forkChild(
          user.call("GET", task, undefined, { prefer: "wait=60" })
        )
        const stream = yield* http.fetch(task, {
          headers: { authorization: `Bearer ${user.key}`, accept: "text/event-stream" }
        })
        assert.strictEqual(stream.status, 200)
        yield* Effect.promise(() => until(() => open.count === 2))

        for (const headers of [{ accept: "text/event-stream" }, { prefer: "wait=60" }]) {
          const refused = yield* user.call("GET", task, undefined, headers)
          assert.strictEqual(refused.status, 429)
          assert.strictEqual(refused.json.code, 1201)
          assert.strictEqual(refused.headers.get("retry-after"), "5")
        }
        const args = { task_id: created.id, wait_seconds: 45 }
        assert.strictEqual((yield* failTool(user, "get_task", args)).code, 1201)
        assert.strictEqual((yield* user.call("GET", task)).status, 200)
        // The task exists, so the create did not fail
        const late = yield* user.call("POST", path, hung, { prefer: "wait=60" })
        assert.strictEqual(late.status, 202)

        const others = yield* Effect.forkChild(other.call("POST", path, hung, { prefer: "wait=5" }))
        yield* Effect.promise(() => until(() => open.count === 3))
        yield* advance("6 seconds")
        assert.strictEqual((yield* Fiber.join(others)).status, 202)

        const reading = yield* Effect.forkChild(Effect.promise(() => stream.text()))
        yield* user.call("DELETE", task)
        yield* advance("2 seconds")
        yield* Fiber.join(waits)
        yield* Fiber.join(reading)
        yield* Effect.promise(() => until(() => open.count === 0))
      })
  )
})
