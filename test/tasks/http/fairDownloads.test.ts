import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { localServer } from "../../support/localServer.ts"
import { png } from "../../support/media.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import type { Task } from "../../support/running.ts"

const edit = "/vendors/alibaba/v1/image-edit/generation"

let slowDownloads = 0

/** `/slow` never ends; `/quick` is a picture. */
const mediaHost = localServer(({ url }, response) => {
  if (url === "/quick") return response.end(Buffer.from(png()))
  slowDownloads += 1
  return response.writeHead(200).write("a")
})

const post = (path: string, body: unknown, token: string) => {
  const init = json(body)
  return call(path, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })
}

const keyOfNewUser = Effect.gen(function* () {
  const answer = <A>(response: Response) => Effect.promise(() => response.json() as Promise<A>)
  const made = yield* post("/manage/v1/users", { email: "attacker@example.com" }, adminToken)
  const { id } = yield* answer<{ readonly id: string }>(made)
  yield* post(`/manage/v1/users/${id}/top-ups`, { amount: "100000" }, adminToken)
  const created = yield* post(
    `/manage/v1/users/${id}/api-keys`,
    { name: "key", scopes: ["inference"] },
    adminToken
  )
  return (yield* answer<{ readonly key: string }>(created)).key
})

/** docs/reference/keys-and-limits.md#shares */
liveLayer(runningGateway())("a user whose media never arrive", (it) => {
  it.effect("delays no task of another user, even of the same model", () =>
    Effect.gen(function* () {
      const url = yield* mediaHost
      const key = yield* keyOfNewUser
      const slow = { prompt: "a", n: 1, images: [`${url}/slow`] }
      // More than a process takes in hand from one queue
      yield* Effect.forEach(
        Array.from({ length: 600 }, () => slow),
        (body) =>
          Effect.map(post(edit, body, key), ({ status }) => assert.strictEqual(status, 202)),
        { concurrency: 20 }
      )
      const before = slowDownloads
      const task: Task = yield* finishedTask(edit, {
        prompt: "a",
        n: 1,
        images: [`${url}/quick`]
      })
      assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
      // In order of arrival, all 600 would begin before this user's
      assert.isBelow(slowDownloads - before, 100)
    })
  )
})
