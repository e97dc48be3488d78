import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readdir } from "node:fs/promises"
import { AppConfig } from "../../../src/config/Config.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { base64, pngOfBytes } from "../../support/media.ts"
import { stores } from "../../support/stores.ts"

/** docs/reference/keys-and-limits.md#kept-inputs */

const edit = "/vendors/alibaba/v1/image-edit/generation"
const [small, large] = [base64(pngOfBytes(20_000)), base64(pngOfBytes(40_000))]
const bodyOf = (prompt: string, ...images: ReadonlyArray<string>) => ({ prompt, n: 1, images })

const inputsOf = Effect.fnUntraced(function* (userId: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly rows: number
    readonly bytes: number
    readonly kept: number
  }>`
    SELECT count(*)::int AS rows, coalesce(sum(bytes), 0)::int AS bytes,
      coalesce((SELECT bytes FROM kept_inputs WHERE user_id = ${userId}), 0)::int AS kept
    FROM artifacts WHERE user_id = ${userId} AND role = 'input'`
  assert.strictEqual(row?.kept, row?.bytes)
  return row?.rows
})

/** Files of the artifact store. */
const files = Effect.flatMap(AppConfig, ({ artifactStore }) =>
  Effect.promise(async () => {
    assert.strictEqual(artifactStore._tag, "Directory")
    const names = await readdir(artifactStore._tag === "Directory" ? artifactStore.directory : "", {
      recursive: true
    })
    return names.filter((name) => name.includes("art_"))
  })
)

describe("kept inputs", () => {
  const env = { KEPT_INPUT_BYTES_PER_USER: "100000" }
  layer(layerGateway({ database: stores.postgres, env }))((it) => {
    it.effect("are removed soon after their task was cancelled or failed, and no others", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const before = (yield* files).length
        const ids: Array<string> = []
        for (const directive of ["hang", "fail", "slow=1s", "hang"]) {
          const created = yield* user.call("POST", edit, bodyOf(`[[sim:${directive}]]`, small))
          assert.strictEqual(created.status, 202, created.text)
          ids.push(created.json.task_info.id)
        }
        assert.strictEqual(yield* inputsOf(user.id), 4)
        yield* user.call("DELETE", `${edit}/${ids[0]}`)
        for (const [at, status] of [
          [1, "failed"],
          [2, "completed"],
          [3, "processing"]
        ] as const) {
          yield* eventually(
            Effect.andThen(advance("1 second"), user.call("GET", `${edit}/${ids[at]}`)),
            ({ json }) => json.task_info.status === status
          )
        }
        yield* advance("60 seconds")
        const rows = yield* eventually(inputsOf(user.id), (count) => count === 2)
        assert.strictEqual(rows, 2)
        // Two inputs, and the result of the completed task
        assert.strictEqual((yield* files).length, before + 3)
        const shown = yield* user.call("GET", `/manage/v1/tasks/${ids[0]}`)
        assert.deepStrictEqual(shown.json.inputs, [])
      })
    )

    it.effect(
      "have an exact limit for each user, above which creates are 429 code 1202 and leave nothing",
      () =>
        Effect.gen(function* () {
          const [user, other] = [yield* makeUser(), yield* makeUser()]
          const hang = bodyOf("[[sim:hang]]", large)
          const once = { "idempotency-key": "first" }
          const first = yield* user.call("POST", edit, hang, once)
          assert.strictEqual(first.status, 202, first.text)
          const before = (yield* files).length
          // The first of its two media would fit
          const tooMany = yield* user.call("POST", edit, bodyOf("[[sim:hang]]", large, large))
          assert.deepStrictEqual([tooMany.status, tooMany.json.code], [429, 1202])
          assert.strictEqual(tooMany.headers.get("retry-after"), "60")
          assert.include(tooMany.json.detail, "100000 bytes")
          assert.strictEqual(yield* inputsOf(user.id), 1)
          assert.strictEqual((yield* files).length, before)

          const racing = yield* Effect.all(
            Array.from({ length: 12 }, () => user.call("POST", edit, hang)),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(racing.filter(({ status }) => status === 202).length, 1)
          assert.strictEqual(racing.filter(({ json }) => json.code === 1202).length, 11)
          assert.strictEqual(yield* inputsOf(user.id), 2)
          assert.strictEqual((yield* files).length, before + 1)

          // A repeat, another user and a body without media are not refused
          const again = yield* user.call("POST", edit, hang, once)
          assert.deepStrictEqual([again.status, again.text], [202, first.text])
          assert.strictEqual((yield* other.call("POST", edit, hang)).status, 202)
          const text = "/vendors/alibaba/v1/text-to-image-max/generation"
          assert.strictEqual((yield* user.call("POST", text, { prompt: "a" })).status, 202)

          yield* user.call("DELETE", `${edit}/${first.json.task_info.id}`)
          yield* advance("60 seconds")
          yield* eventually(inputsOf(user.id), (count) => count === 1)
          assert.strictEqual((yield* user.call("POST", edit, hang)).status, 202)
        })
    )
  })
})
