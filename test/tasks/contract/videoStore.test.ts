import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { VideoStore } from "../../../src/tasks/videos/VideoStore.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { stores } from "../../support/stores.ts"

const noTask = TaskId.make("00000000-0000-7000-8000-000000000000")

for (const database of ["embedded", "postgres"] as const) {
  describe(`VideoStore (${database})`, () => {
    layer(layerGateway({ database: stores[database] }), { timeout: "60 seconds" })((it) => {
      it.effect("lists a user's videos in pages, and deletes each once, after its end", () =>
        Effect.gen(function* () {
          const [user, other] = [yield* makeUser(), yield* makeUser()]
          const ids: Array<TaskId> = []
          for (const prompt of ["[[sim:refuse]]", "[[sim:hang]]", "[[sim:hang]]"]) {
            const body = { model: "text-to-video-spark", prompt }
            const made = yield* user.call("POST", "/v1/videos", body)
            ids.push(TaskId.make(made.json.id))
            yield* advance("1 second")
          }
          const [first, second, third] = [ids[0]!, ids[1]!, ids[2]!]
          yield* user.call("POST", "/vendors/alibaba/v1/text-to-image-max/generation", {
            prompt: "no video"
          })
          const store = yield* VideoStore

          yield* eventually(store.find(user.id, first), (found) =>
            Option.exists(found, ({ status }) => status === "failed")
          )
          const list = (isAscending: boolean, limit: number, after?: TaskId) =>
            Effect.map(store.list(user.id, { after, limit, isAscending }), (rows) =>
              rows.map(({ id }) => id)
            )
          assert.deepStrictEqual(yield* list(false, 2), [third, second])
          assert.deepStrictEqual(yield* list(false, 2, second), [first])
          assert.deepStrictEqual(yield* list(true, 2), [first, second])
          assert.deepStrictEqual(yield* list(true, 2, second), [third])
          assert.deepStrictEqual(yield* store.list(other.id, { limit: 9, isAscending: false }), [])

          const now = yield* DateTime.now
          assert.isTrue(Option.isNone(yield* store.find(other.id, first)))
          assert.isTrue(Option.isNone(yield* store.find(user.id, noTask)))
          assert.isTrue(Option.isNone(yield* store.delete(other.id, first, now)))
          assert.isTrue(Option.isNone(yield* store.delete(user.id, second, now)), "it runs")
          const both = yield* Effect.all(
            [store.delete(user.id, first, now), store.delete(user.id, first, now)],
            { concurrency: 2 }
          )
          assert.lengthOf(both.filter(Option.isSome), 1)
          assert.isTrue(Option.isNone(yield* store.find(user.id, first)))
          assert.deepStrictEqual(yield* list(true, 9), [second, third])
        })
      )
    })
  })
}
