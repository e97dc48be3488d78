import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { SqlClient } from "effect/sql"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ArtifactId } from "../../../src/domain/Ids.ts"
import { EventLogStore } from "../../../src/webhooks/EventLogStore.ts"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import {
  advance,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { base64, png } from "../../support/media.ts"
import { stores } from "../../support/stores.ts"
import { breachesOf } from "../../support/wallets.ts"

/** docs/reference/batches.md */

const path = "/manage/v1/task-batches"
/** Costs 7.50 credits. */
const image = (prompt = "A lighthouse") => ({
  vendor: "alibaba",
  model: "text-to-image-max",
  body: { prompt }
})
/** Costs 50.00 credits. */
const video = (prompt = "A lighthouse") => ({
  vendor: "service",
  model: "text-to-video-spark",
  body: { prompt }
})
const hanging = "[[sim:hang]]"
const keyed = (key: string) => ({ "idempotency-key": key })

const countOf = Effect.fnUntraced(function* (table: string, userId: string) {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql.unsafe(`SELECT 1 FROM ${table} WHERE user_id = $1`, [userId])).length
})

/** Advances the clock until this many tasks of a batch have ended. */
const untilEnded = (user: Effect.Success<ReturnType<typeof makeUser>>, id: string, n: number) =>
  eventually(
    Effect.andThen(advance("1 second"), user.call("GET", `${path}/${id}`)),
    ({ json: { counts } }) => counts.completed + counts.failed >= n
  )

/** The media in the artifact store. */
const storedMedia = Effect.map(AppConfig, ({ dataDir }) =>
  readdirSync(join(dataDir, "artifacts"), { encoding: "utf8", recursive: true }).filter((name) =>
    name.includes("art_")
  )
)

/** Nothing of a batch was written. */
const assertNothing = Effect.fnUntraced(function* (userId: string) {
  for (const table of [
    "tasks",
    "holds",
    "events",
    "task_batches",
    "idempotency_keys",
    "artifacts"
  ]) {
    assert.strictEqual(yield* countOf(table, userId), 0, table)
  }
  const sql = yield* SqlClient.SqlClient
  assert.isEmpty(yield* sql`SELECT FROM wallet_entries WHERE user_id = ${userId} AND kind = 'hold'`)
  const runs =
    yield* sql`SELECT FROM runs r JOIN api_keys k ON k.id = r.api_key_id WHERE k.user_id = ${userId}`
  assert.isEmpty(runs)
})

describe("task batches", () => {
  layer(layerGateway({ database: stores.postgres }))((it) => {
    it.effect(
      "create tasks of several models, each with its hold, in the order of the request",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const tasks = [image("one"), video("two"), { ...image("three"), action: "generation" }]
          const created = yield* user.call("POST", path, { tasks })
          assert.strictEqual(created.status, 202, created.text)
          assert.deepInclude(created.json, {
            status: "in_progress",
            counts: { total: 3, unfinished: 3, completed: 0, failed: 0 },
            receipt: { held: "65.00", captured: "0.00", released: "0.00", currency: "credits" },
            ended_at: null
          })
          assert.strictEqual(created.headers.get("x-service-cost"), "65.00")
          assert.strictEqual(created.headers.get("x-service-balance"), "935.00")
          const { id, task_ids: ids } = created.json
          const got = yield* user.call("GET", `${path}/${id}`)
          assert.deepStrictEqual(
            got.json.data.map((task: { id: string; model: string }) => [task.id, task.model]),
            ids.map((it: string, n: number) => [it, tasks[n]?.model])
          )
          assert.strictEqual(yield* countOf("holds", user.id), 3)
          assert.strictEqual(yield* countOf("events", user.id), 3)

          const { json: ended } = yield* untilEnded(user, id, 3)
          assert.deepInclude(ended, {
            status: "completed",
            counts: { total: 3, unfinished: 0, completed: 3, failed: 0 },
            receipt: { held: "0.00", captured: "65.00", released: "0.00", currency: "credits" }
          })
          assert.isString(ended.ended_at)
          assert.strictEqual(yield* breachesOf(user.id), 0)
          const timeline = yield* user.call("GET", `/manage/v1/tasks/${ids[0]}`)
          assert.strictEqual(timeline.json.batch_id, id)
          // Each task is an ordinary task
          const own = yield* user.call(
            "GET",
            `/vendors/service/v1/text-to-video-spark/generation/${ids[1]}`
          )
          assert.strictEqual(own.json.task_info.status, "completed")
        })
    )

    it.effect("emit one event when all tasks have ended, also in the event stream", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* user.call("POST", "/manage/v1/webhook-endpoints", {
          url: `https://example.com/${user.id}`,
          events: ["task_batch.completed"]
        })
        const tasks = [image(), image("[[sim:refuse]]"), image("[[sim:slow=20s]]")]
        const { json: batch } = yield* user.call("POST", path, { tasks })
        const sent = Effect.gen(function* () {
          const all = yield* (yield* WebhookSenderLog).sent
          return all.filter(({ request }) => request.url.endsWith(user.id))
        })
        yield* untilEnded(user, batch.id, 2)
        assert.isEmpty(yield* sent)
        yield* untilEnded(user, batch.id, 3)
        yield* eventually(Effect.andThen(advance("1 second"), sent), (it) => it.length > 0)
        yield* advance("5 seconds")
        const [first, ...others] = yield* sent
        assert.isEmpty(others)
        const event = JSON.parse(new TextDecoder().decode(first?.request.body))
        const {
          data: _,
          next_cursor: __,
          ...shown
        } = (yield* user.call("GET", `${path}/${batch.id}`)).json
        assert.strictEqual(event.type, "task_batch.completed")
        assert.deepStrictEqual(event.data, { user_id: user.id, payload: shown })
        assert.deepInclude(shown, {
          counts: { total: 3, unfinished: 0, completed: 2, failed: 1 },
          receipt: { held: "0.00", captured: "15.00", released: "7.50", currency: "credits" }
        })
        const log = yield* EventLogStore
        const { rows } = yield* log.after(user.id, {
          types: ["task_batch.completed"],
          since: Option.none(),
          position: { seq: 0n, alertsUntil: DateTime.makeUnsafe(0) },
          entries: 100
        })
        assert.deepStrictEqual(
          rows.map(({ id }) => String(id)),
          [event.id]
        )
        const deliveries = yield* user.call(
          "GET",
          "/manage/v1/webhook-deliveries?type=task_batch.completed"
        )
        assert.strictEqual(deliveries.json.data.length, 1, deliveries.text)
      })
    )

    it.effect("change nothing if their price is above the balance", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 20 })
        const refused = yield* user.call(
          "POST",
          path,
          { tasks: [image(), image(), image()] },
          keyed("k")
        )
        assert.deepStrictEqual([refused.status, refused.json.code], [402, 1101])
        yield* assertNothing(user.id)
        const fits = yield* user.call("POST", path, { tasks: [image(), image()] }, keyed("k"))
        assert.strictEqual(fits.status, 202, fits.text)
        assert.strictEqual(fits.headers.get("x-service-balance"), "5.00")
      })
    )

    it.effect("are refused with each fault of each task by its JSON pointer", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const tasks = [
          image(),
          { ...image(), body: { prompt: "", colour: "red" } },
          { ...image(), model: "no-such-model".repeat(1000) },
          { ...image(), body: { prompt: "a", metadata: { key: 1 } } }
        ]
        const refused = yield* user.call("POST", path, { tasks })
        assert.strictEqual(refused.json.code, 2001, refused.text)
        assert.deepStrictEqual(
          refused.json.errors.map(({ pointer }: { pointer: string }) => pointer).toSorted(),
          [
            "#/tasks/1/body/colour",
            "#/tasks/1/body/prompt",
            "#/tasks/2/model",
            "#/tasks/3/body/metadata/key"
          ]
        )
        assert.isBelow(refused.text.length, 2000, "only part of the input is quoted")
        const shapes = [
          [{ tasks: [] }, "#/tasks"],
          [{ tasks: Array.from({ length: 1001 }, () => image()) }, "#/tasks"],
          [{ tasks: [{ ...image(), extra: 1 }] }, "#/tasks/0/extra"],
          [{ tasks: [{ vendor: "alibaba", body: {} }] }, "#/tasks/0/model"],
          [{ tasks: [{ ...image(), body: [] }] }, "#/tasks/0/body"],
          [{ tasks: [{ ...image(), action: "paint" }] }, "#/tasks/0/action"],
          [{ tasks: [image()], name: "a" }, "#/name"],
          [[], "#"]
        ] as const
        for (const [body, pointer] of shapes) {
          const shape = yield* user.call("POST", path, body)
          assert.deepStrictEqual(
            [shape.status, shape.json.errors?.[0]?.pointer],
            [400, pointer],
            shape.text
          )
        }
        const body = { prompt: "a".repeat(90_000), images: ["https://example.com/a.png"] }
        const long = yield* user.call("POST", path, {
          tasks: Array.from({ length: 100 }, () => ({
            vendor: "google",
            model: "image-edit-pro",
            action: "edit",
            body
          }))
        })
        assert.strictEqual(long.json.errors?.[0]?.pointer, "#/tasks/46/body/prompt")
        const query = yield* user.call("GET", `${path}?limit=0&colour=red`)
        assert.deepStrictEqual(
          query.json.errors.map(({ pointer }: { pointer: string }) => pointer).toSorted(),
          ["#/query/colour", "#/query/limit"]
        )
        yield* assertNothing(user.id)
      })
    )

    it.effect(
      "return the first response to a repeat with the same Idempotency-Key at any time",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser({ credits: 30 })
          const tasks = [image(hanging), image(hanging), image(hanging)]
          const answers = yield* Effect.all(
            Array.from({ length: 3 }, () => user.call("POST", path, { tasks }, keyed("k"))),
            { concurrency: "unbounded" }
          )
          const again = yield* user.call(
            "POST",
            path,
            { tasks },
            { ...keyed("k"), "x-service-max-cost": "1" }
          )
          for (const answer of [...answers, again]) {
            assert.strictEqual(answer.text, answers[0]?.text)
            assert.strictEqual(answer.headers.get("x-service-cost"), "22.50")
            assert.strictEqual(answer.headers.get("x-service-balance"), "7.50")
          }
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
          assert.strictEqual(yield* countOf("tasks", user.id), 3)
          const other = yield* user.call("POST", path, { tasks: [image()] }, keyed("k"))
          assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
        })
    )

    it.effect("are refused with 1103 if their sum exceeds X-Service-Max-Cost", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const most = { "x-service-max-cost": "14.99" }
        const refused = yield* user.call("POST", path, { tasks: [image(), image()] }, most)
        assert.deepStrictEqual([refused.status, refused.json.code], [402, 1103])
        assert.include(refused.json.detail, "15.00")
        yield* assertNothing(user.id)
      })
    )

    it.effect("fail their unfinished tasks and release the holds on a cancel", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const tasks = [image(), image(hanging), image(hanging)]
        const { json: batch } = yield* user.call("POST", path, { tasks })
        yield* untilEnded(user, batch.id, 1)
        const cancelled = yield* user.call("POST", `${path}/${batch.id}/cancel`)
        assert.strictEqual(cancelled.status, 200, cancelled.text)
        assert.deepInclude(cancelled.json, {
          status: "completed",
          counts: { total: 3, unfinished: 0, completed: 1, failed: 2 },
          receipt: { held: "0.00", captured: "7.50", released: "15.00", currency: "credits" }
        })
        assert.strictEqual(yield* breachesOf(user.id), 0)
        const again = yield* user.call("POST", `${path}/${batch.id}/cancel`)
        assert.deepStrictEqual([again.status, again.json.code], [409, 2010])
      })
    )

    it.effect("are listed in pages, as are their tasks; another user's batch is 404", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const other = yield* makeUser()
        const tasks = Array.from({ length: 5 }, () => image(hanging))
        const ids: Array<string> = []
        for (let n = 0; n < 3; n += 1) {
          ids.push((yield* user.call("POST", path, { tasks })).json.id)
          yield* advance("1 second")
        }
        const first = yield* user.call("GET", `${path}?limit=2`)
        const second = yield* user.call("GET", `${path}?limit=2&cursor=${first.json.next_cursor}`)
        assert.deepStrictEqual(
          [...first.json.data, ...second.json.data].map(({ id }: { id: string }) => id),
          ids.toReversed()
        )
        assert.isNull(second.json.next_cursor)
        const seen: Array<string> = []
        let cursor: string | null = ""
        while (cursor !== null) {
          const query: string = cursor === "" ? "" : `&cursor=${cursor}`
          const page = yield* user.call("GET", `${path}/${ids[0]}?limit=2${query}`)
          seen.push(...page.json.data.map(({ id }: { id: string }) => id))
          cursor = page.json.next_cursor
        }
        assert.strictEqual(new Set(seen).size, 5)
        assert.deepStrictEqual(seen, seen.toSorted())
        for (const [method, at] of [
          ["GET", `${path}/${ids[0]}`],
          ["POST", `${path}/${ids[0]}/cancel`],
          ["GET", `${path}/nothing`]
        ] as const) {
          const refused = yield* other.call(method, at)
          assert.deepStrictEqual([refused.status, refused.json.code], [404, 2005], at)
        }
      })
    )

    it.effect("need the scope inference", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ scopes: ["manage"] })
        for (const [method, at] of [
          ["POST", path],
          ["GET", path],
          ["GET", `${path}/tb_0`],
          ["POST", `${path}/tb_0/cancel`]
        ] as const) {
          const refused = yield* user.call(
            method,
            at,
            method === "POST" ? { tasks: [image()] } : undefined
          )
          assert.deepStrictEqual(
            [refused.status, refused.json.code],
            [403, 1004],
            `${method} ${at}`
          )
        }
        assert.strictEqual((yield* operator("GET", path)).status, 401)
        const { fetch } = yield* GatewayHttp
        assert.strictEqual((yield* fetch(path, { method: "DELETE" })).status, 405)
      })
    )

    it.effect("leave no inline media when they are refused", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 5 })
        const before = yield* storedMedia
        const picture = base64(png({ width: 400, height: 400 }))
        const edit = {
          vendor: "google",
          model: "image-edit-pro",
          action: "edit",
          body: { prompt: "a", images: [picture] }
        }
        const refused = yield* user.call("POST", path, { tasks: [edit, edit] })
        assert.strictEqual(refused.json.code, 1101, refused.text)
        yield* assertNothing(user.id)
        assert.sameMembers(yield* storedMedia, before)
      })
    )

    it.effect("store the inline media of each task", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const pictures = [png({ width: 400, height: 400 }), png({ width: 500, height: 400 })]
        const tasks = pictures.map((picture) => ({
          vendor: "google",
          model: "image-edit-pro",
          action: "edit",
          body: { prompt: hanging, images: [base64(picture)] }
        }))
        const created = yield* user.call("POST", path, { tasks })
        assert.strictEqual(created.status, 202, created.text)
        const artifacts = yield* Artifacts
        for (const [n, id] of created.json.task_ids.entries()) {
          const { json } = yield* user.call("GET", `/manage/v1/tasks/${id}`)
          const [reference] = json.body.images
          const stored = yield* artifacts.read(ArtifactId.make(reference.replace("artifact:", "")))
          assert.deepStrictEqual(Buffer.from(Option.getOrThrow(stored)), Buffer.from(pictures[n]!))
        }
      })
    )

    it.effect("create a thousand tasks in one transaction", () =>
      Effect.gen(function* () {
        const user = yield* makeUser({ credits: 7500 })
        const tasks = Array.from({ length: 1000 }, (_, n) => image(`${n} ${hanging}`))
        const created = yield* user.call("POST", path, { tasks })
        assert.strictEqual(created.status, 202, created.text)
        assert.strictEqual(created.headers.get("x-service-balance"), "0.00")
        const cancelled = yield* user.call("POST", `${path}/${created.json.id}/cancel`)
        assert.deepInclude(cancelled.json.counts, { total: 1000, failed: 1000 })
        assert.strictEqual(yield* countOf("holds", user.id), 0)
        // Many transactions have ended its tasks, two at a time
        const sql = yield* SqlClient.SqlClient
        const ends =
          yield* sql`SELECT FROM events WHERE user_id = ${user.id} AND type = 'task_batch.completed'`
        assert.strictEqual(ends.length, 1)
      })
    )
  })

  layer(
    layerGateway({
      database: stores.postgres,
      env: { RATE_LIMIT_PER_MINUTE: "10", CONCURRENT_TASKS_PER_KEY: "6" }
    }),
    { timeout: "60 seconds" }
  )("with limits", (it) => {
    it.effect("count each task as unfinished and as a request", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const seven = yield* user.call("POST", path, {
          tasks: Array.from({ length: 7 }, () => image(hanging))
        })
        assert.deepStrictEqual([seven.status, seven.json.code], [429, 1202])
        assert.include(seven.json.detail, "may begin 6 more tasks")
        yield* assertNothing(user.id)
        const five = yield* user.call("POST", path, {
          tasks: Array.from({ length: 5 }, () => image(hanging))
        })
        assert.strictEqual(five.status, 202, five.text)
        // 10 a minute: one was refused, five were taken
        const left = yield* user.call("GET", path)
        assert.strictEqual(left.headers.get("ratelimit-remaining"), "3")
      })
    )
  })
})
