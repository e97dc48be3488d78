import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { kept, megabyte } from "../../support/heap.ts"
import { base64, pngOfBytes } from "../../support/media.ts"
import { call, json, runningGateway } from "../../support/running.ts"
import type { Task } from "../../support/running.ts"

const edit = "/vendors/alibaba/v1/image-edit/generation"
const tasks = 12
const pictureBytes = 3 * megabyte
const picture = base64(pngOfBytes(pictureBytes))

describe("a waiting task", () => {
  layer(runningGateway(), { excludeTestServices: true })((it) => {
    it.effect(
      "keeps neither the request that created it nor its media in memory",
      () =>
        Effect.gen(function* () {
          const requests: Array<WeakRef<object>> = []
          const onRequest = (message: unknown) => {
            requests.push(new WeakRef((message as { readonly request: object }).request))
          }
          yield* Effect.acquireRelease(
            Effect.sync(() => subscribe("http.server.request.start", onRequest)),
            () => Effect.sync(() => unsubscribe("http.server.request.start", onRequest))
          )
          const body = { prompt: "a [[sim:slow=600s]]", images: [picture] }
          const create = Effect.gen(function* () {
            const response = yield* call(edit, json(body))
            assert.strictEqual(response.status, 202)
            return ((yield* Effect.promise(() => response.json())) as Task).task_info.id
          })
          yield* create
          const before = kept()
          const ids: Array<string> = []
          for (let n = 0; n < tasks; n += 1) ids.push(yield* create)
          // The last requests of a connection stay with it until the next ones
          for (let n = 0; n < 3; n += 1) yield* call(`${edit}/${ids[0]}`)
          yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 50)))
          const after = kept()
          const alive = requests.slice(0, tasks).filter((it) => it.deref() !== undefined)
          assert.lengthOf(alive, 0, "requests in memory")
          const grown = after.heap + after.buffers - before.heap - before.buffers
          assert.isBelow(grown, (tasks * pictureBytes) / 4, `${grown} bytes for ${tasks} tasks`)
          for (const id of ids) yield* call(`${edit}/${id}`, { method: "DELETE" })
        }).pipe(Effect.scoped),
      90_000
    )
  })
})
