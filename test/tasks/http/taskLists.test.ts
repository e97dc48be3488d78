import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TaskId } from "../../../src/domain/Ids.ts"
import { TaskRetentionStore } from "../../../src/tasks/privacy/TaskRetentionStore.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const several = "/vendors/alibaba/v1/text-to-image-preview/generation"
const video = "/vendors/service/v1/text-to-video-spark/generation"

/** docs/reference/tasks.md#history */
layer(layerGateway({ env: { SIMULATOR_DELAY: "1 second" } }), {
  timeout: "60 seconds"
})("a task in a list", (it) => {
  it.effect("has the beginning of its prompt, the name of its key and its first result", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const list = Effect.map(user.call("GET", "/manage/v1/tasks"), ({ json }) => json.data)
      const long = "🌊".repeat(250)
      const made = yield* user.call("POST", several, { prompt: long, n: 2 })
      assert.strictEqual(made.status, 202, made.text)
      yield* advance("1 second")
      const filmed = yield* user.call("POST", video, { prompt: "A wave" })
      assert.strictEqual(filmed.status, 202, filmed.text)
      yield* advance("1 second")
      yield* user.call("POST", path, { prompt: "[[sim:fail]]" })
      yield* advance("30 seconds")
      const [failed, film, picture] = yield* eventually(list, (all) =>
        all.every((it: { ended_at: string | null }) => it.ended_at !== null)
      )
      assert.deepStrictEqual(
        [failed, film, picture].map(({ prompt }) => prompt),
        ["[[sim:fail]]", "A wave", "🌊".repeat(200)]
      )
      const [key] = (yield* user.call("GET", "/manage/v1/api-keys")).json.data
      assert.strictEqual(picture.key_name, key.name)
      assert.notProperty(failed, "preview")
      assert.deepInclude(film.preview, { kind: "videos", count: 1 })
      assert.deepInclude(picture.preview, { kind: "images", count: 2 })
      const one = yield* user.call("GET", `/manage/v1/tasks/${picture.id}`)
      assert.strictEqual(one.json.result[0], picture.preview.url)
      assert.strictEqual(one.json.key_name, key.name)
      const { pathname, search } = new URL(picture.preview.url)
      const shown = yield* user.call("GET", pathname + search)
      assert.deepStrictEqual([shown.status, shown.headers.get("content-type")], [200, "image/png"])

      // The link expires, and so does the preview
      const left = Date.parse(picture.preview.expires_at) - Date.parse(picture.ended_at)
      assert.isAtMost(Math.abs(left - 24 * 3_600_000), 60_000)
      const sql = yield* SqlClient
      yield* sql`
        UPDATE tasks SET result = regexp_replace(result::text, 'expires=\\d+', 'expires=1', 'g')::jsonb
        WHERE result IS NOT NULL`
      const later = yield* list
      assert.isFalse(later.some((it: object) => "preview" in it))
      assert.strictEqual(later[2].prompt, picture.prompt)

      const store = yield* TaskRetentionStore
      yield* store.scrubBefore(TaskId.make("ffffffff-0000-7000-8000-000000000000"), 100)
      assert.isFalse((yield* list).some((it: object) => "prompt" in it))
    })
  )

  it.effect("shows no video that its client has deleted", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const made = yield* user.call("POST", "/v1/videos", {
        model: "text-to-video-spark",
        prompt: "A wave"
      })
      assert.strictEqual(made.status, 200, made.text)
      yield* advance("30 seconds")
      const list = Effect.map(user.call("GET", "/manage/v1/tasks"), ({ json }) => json.data)
      yield* eventually(list, ([task]) => task.preview !== undefined)
      const gone = yield* user.call("DELETE", `/v1/videos/${made.json.id}`)
      assert.strictEqual(gone.status, 200, gone.text)
      const [task] = yield* list
      assert.notProperty(task, "preview")
      assert.strictEqual(task.prompt, "A wave")
    })
  )
})
