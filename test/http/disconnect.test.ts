import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TaskChanges } from "../../src/tasks/TaskChanges.ts"
import { eventually, makeUser } from "../support/gateway.ts"
import { liveLayer } from "../support/liveLayer.ts"
import { layerListening, Listening } from "../support/sockets.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

describe("a client that disconnects", () => {
  liveLayer(layerListening())((it) => {
    for (const headers of [{ prefer: "wait=60" }, { accept: "text/event-stream" }]) {
      it.effect(`ends the wait for it (${Object.keys(headers)[0]})`, () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const { url } = yield* Listening
          const changes = yield* TaskChanges
          const watched = Effect.sync(() => changes.size)
          const created = yield* user.call("POST", path, { prompt: "[[sim:hang]]" })
          const id = created.json.task_info.id
          const client = yield* Scope.make()
          const signal = yield* Scope.provide(Effect.abortSignal, client)
          const asking = fetch(`${url}${path}/${id}`, {
            headers: { authorization: `Bearer ${user.key}`, ...headers },
            signal
          }).catch(() => undefined)
          yield* eventually(watched, (count) => count === 1)
          if ("accept" in headers) {
            const response = yield* Effect.promise(() => asking)
            assert.strictEqual(response?.status, 200)
          }
          yield* Scope.close(client, Exit.void)
          yield* eventually(watched, (count) => count === 0)
          const cancelled = yield* user.call("DELETE", `${path}/${id}`)
          assert.strictEqual(cancelled.status, 200)
        })
      )
    }

    it.effect("ends the wait of its create, and the task continues", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { url } = yield* Listening
        const changes = yield* TaskChanges
        const watched = Effect.sync(() => changes.size)
        const client = yield* Scope.make()
        const signal = yield* Scope.provide(Effect.abortSignal, client)
        const headers = {
          authorization: `Bearer ${user.key}`,
          "content-type": "application/json",
          "idempotency-key": "one",
          prefer: "wait=60"
        }
        const body = JSON.stringify({ prompt: "[[sim:hang]]" })
        const create = { method: "POST", headers, body }
        const asking = fetch(`${url}${path}`, { ...create, signal }).catch(() => {})
        yield* eventually(watched, (count) => count === 1)
        yield* Scope.close(client, Exit.void)
        yield* Effect.promise(() => asking)
        yield* eventually(watched, (count) => count === 0)
        const again = yield* user.call("POST", path, JSON.parse(body), { "idempotency-key": "one" })
        const task = yield* user.call("GET", `${path}/${again.json.task_info.id}`)
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        assert.oneOf(task.json.task_info.status, ["pending", "processing"])
        yield* user.call("DELETE", `${path}/${again.json.task_info.id}`)
      })
    )
  })
})
