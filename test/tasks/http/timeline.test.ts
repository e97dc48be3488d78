import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { dataUri, pngOfBytes } from "../../support/media.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"

layer(layerGateway(), { timeout: "60 seconds" })("GET /manage/v1/tasks", (it) => {
  it.effect("shows a task's moves, attempts, ledger, deliveries, trace ids and receipt", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: "https://hooks.example.com/a",
        events: ["task.created", "task.succeeded"]
      })
      const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
      const created = yield* user.call(
        "POST",
        path,
        { prompt: "[[sim:429=1]] a" },
        {
          traceparent: `00-${trace}-00f067aa0ba902b7-01`
        }
      )
      const id = created.json.task_info.id
      const place = `/manage/v1/tasks/${id}`
      const running = yield* user.call("GET", place)
      assert.deepStrictEqual(running.json.receipt, {
        held: "7.50",
        captured: "0.00",
        released: "0.00",
        currency: "credits"
      })
      yield* advance("10 seconds")
      const done = yield* eventually(user.call("GET", place), (it) => it.json.ended_at !== null)
      const { attempts, body, deliveries, entries, moves, receipt, result } = done.json
      assert.deepStrictEqual(
        moves.map((it: { status: string }) => it.status),
        ["pending", "processing", "completed"]
      )
      for (const move of moves) {
        assert.strictEqual(move.trace_id, trace)
        assert.match(move.at, /^\d{4}-.*Z$/u)
      }
      assert.deepStrictEqual(
        attempts.map((it: { n: number; state: string; failure_class: string | null }) => [
          it.n,
          it.state,
          it.failure_class
        ]),
        [
          [1, "refused", "RATE_LIMITED"],
          [2, "submitted", null]
        ]
      )
      assert.notProperty(attempts[1], "handle")
      assert.deepStrictEqual(
        entries.map((it: { kind: string; amount: string; trace_id: string }) => [
          it.kind,
          it.amount,
          it.trace_id
        ]),
        [
          ["hold", "7.50", trace],
          ["capture", "7.50", trace]
        ]
      )
      assert.deepStrictEqual(receipt, {
        held: "0.00",
        captured: "7.50",
        released: "0.00",
        currency: "credits"
      })
      assert.sameMembers(
        deliveries.map((it: { type: string }) => it.type),
        ["task.created", "task.succeeded"]
      )
      assert.strictEqual(deliveries[0].trace_id, trace)
      assert.strictEqual(deliveries[0].attempts.length, 1)
      assert.strictEqual(deliveries[0].attempts[0].status, 200)
      assert.strictEqual(body.prompt, "[[sim:429=1]] a")
      assert.strictEqual(result.length, 1)
    })
  )

  it.effect("shows inline media of the input by signed URLs, only for their own task", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const edit = "/vendors/alibaba/v1/image-edit/generation"
      const picture = pngOfBytes(40_000)
      const far = "https://example.com/far.png"
      const timeline = (id: string) =>
        Effect.map(user.call("GET", `/manage/v1/tasks/${id}`), ({ json }) => json)
      const first = yield* user.call("POST", edit, {
        prompt: "[[sim:hang]]",
        images: [dataUri("image/png", picture), far]
      })
      const { body, inputs } = yield* timeline(first.json.task_info.id)
      const [reference] = body.images as [string]
      assert.match(reference, /^artifact:art_[0-9a-f]{32}$/u)
      assert.lengthOf(inputs, 1)
      assert.deepInclude(inputs[0], {
        pointer: "#/images/0",
        media_type: "image/png",
        size: picture.length
      })
      const { pathname, search } = new URL(inputs[0].url)
      const kept = yield* user.call("GET", pathname + search)
      assert.strictEqual(kept.status, 200)
      assert.strictEqual(kept.headers.get("content-length"), String(picture.length))
      // A text that names someone's medium reveals nothing about it
      const second = yield* user.call("POST", path, { prompt: reference })
      const other = yield* timeline(second.json.task_info.id)
      assert.deepStrictEqual([other.body.prompt, other.inputs], [reference, []])
    })
  )

  it.effect("lists tasks newest first, filtered and in pages", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const ids: Array<string> = []
      for (let i = 0; i < 3; i += 1) {
        const created = yield* user.call("POST", path, { prompt: "[[sim:hang]]" })
        ids.unshift(created.json.task_info.id)
        yield* advance("1 second")
      }
      yield* user.call("DELETE", `${path}/${ids[0]}`)
      const list = (query: string) =>
        Effect.map(user.call("GET", `/manage/v1/tasks?${query}`), ({ json }) => ({
          ids: json.data.map((it: { id: string }) => it.id),
          next: json.next_cursor
        }))
      assert.deepStrictEqual((yield* list("")).ids, ids)
      assert.deepStrictEqual((yield* list("status=failed")).ids, ids.slice(0, 1))
      const running = list("status=processing&vendor=alibaba")
      yield* eventually(running, (it) => it.ids.length === 2)
      assert.deepStrictEqual((yield* running).ids, ids.slice(1))
      assert.deepStrictEqual((yield* list("model=image-edit")).ids, [])
      const first = yield* list("limit=2")
      assert.deepStrictEqual(first.ids, ids.slice(0, 2))
      const second = yield* list(`limit=2&cursor=${first.next}`)
      assert.deepStrictEqual(second, { ids: ids.slice(2), next: null })
      for (const query of ["status=odd", "limit=0", "limit=101", "cursor=x"]) {
        const refused = yield* user.call("GET", `/manage/v1/tasks?${query}`)
        assert.strictEqual(refused.json.code, 2001, query)
      }
      const otherUser = yield* makeUser()
      const other = yield* otherUser.call("GET", "/manage/v1/tasks")
      assert.deepStrictEqual(other.json, { data: [], next_cursor: null })
      const hidden = yield* otherUser.call("GET", `/manage/v1/tasks/${ids[0]}`)
      assert.strictEqual(hidden.json.code, 2005)
    })
  )

  it.effect("GET /models: vendor, model, path, JSON Schema of the body, price", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const models = yield* user.call("GET", "/manage/v1/models")
      const model = models.json.data.find((it: { path: string }) => it.path === path)
      assert.deepInclude(model, {
        vendor: "alibaba",
        model: "text-to-image-max",
        result: "images",
        type: "media",
        sandbox: true,
        price: { per: "image", amount: "7.50" }
      })
      assert.strictEqual(model.body_schema.properties.prompt.type, "string")
      assert.deepStrictEqual(model.media, {})
      const edit = models.json.data.find((it: { model: string }) => it.model === "image-edit")
      assert.deepStrictEqual(edit.media, {
        images: {
          kind: "image",
          media_types: ["image/jpeg", "image/png", "image/bmp", "image/webp"],
          max_bytes: 10_485_760,
          min_side: 384,
          max_side: 5000,
          min_seconds: null,
          max_seconds: null,
          inline: true
        }
      })
    })
  )
})
