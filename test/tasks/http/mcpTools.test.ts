import { assert, describe, it, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer } from "effect"
import type { VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { failTool, rpc, useTool } from "../../support/mcp.ts"
import type { Caller } from "../../support/mcp.ts"
import { pngOfBytes } from "../../support/media.ts"
import { startedDatabase } from "../../support/stores.ts"

const model = "text-to-image-max"
const path = `/vendors/alibaba/v1/${model}/generation`
const buy = (prompt: string, more: object = {}) => ({ model, input: { prompt }, ...more })

const tasksOf = (user: Caller) =>
  Effect.map(user.call("GET", "/manage/v1/tasks?limit=100"), ({ json }) => json.data)

const typesOf = (result: { content: ReadonlyArray<{ type: string }> }) =>
  result.content.map(({ type }) => type)

const endpoint = (user: Caller, url: string) =>
  Effect.map(
    user.call("POST", "/manage/v1/webhook-endpoints", {
      url,
      events: ["task.created", "task.succeeded"]
    }),
    ({ json }) => json
  )

const pictures = [pngOfBytes(2000), pngOfBytes(3 * 1024 * 1024 + 1)]

/** Returns the first pictures of the list or never ends. Unlike the simulator it renders nothing. */
const vendor: Partial<VendorAccount> = {
  submit: ({ body, taskId }) =>
    Effect.succeed({
      _tag: "Accepted",
      handle: { job: taskId, n: has(body, '"n":2') ? 2 : 1, hangs: has(body, "[hang]") },
      pollAfter: Duration.seconds(3)
    }),
  poll: ({ hangs, n }) =>
    Effect.succeed(
      hangs === true
        ? { _tag: "Running", pollAfter: Duration.hours(1) }
        : {
            _tag: "Done",
            result: {
              items: pictures
                .slice(0, Number(n))
                .map((bytes) => ({ _tag: "Bytes", bytes, mime: "image/png" }))
            }
          }
    )
}

const has = (body: unknown, text: string): boolean => JSON.stringify(body).includes(text)

/** Advances the clock until the fiber has ended, because results are written in real time. */
const ended = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.andThen(
    eventually(
      Effect.map(advance("1 second"), () => fiber.pollUnsafe()),
      (exit) => exit !== undefined
    ),
    Fiber.join(fiber)
  )

/** docs/reference/mcp.md#tools */
describe("the tools of MCP", () => {
  const statuses = [500]
  const webhook = () => Effect.sync(() => mockOutcome(statuses.shift() ?? 200))
  layer(layerGateway({ vendor, webhook }), { timeout: "60 seconds" })((it) => {
    it.effect("make an image: quote, create, wait, and the picture with its link", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const quoted = yield* useTool(user, "quote", { model, input: { prompt: "a" } })
        assert.deepStrictEqual(quoted.structuredContent, {
          model: `alibaba/${model}`,
          amount: "7.50",
          currency: "credits"
        })
        assert.lengthOf(yield* tasksOf(user), 0)
        const metadata = { order: "17" }
        const { structuredContent: created } = yield* useTool(
          user,
          "create_task",
          buy("a", { metadata, max_cost: "7.50" })
        )
        assert.deepInclude(created, { status: "pending", cost: "7.50", balance: "992.50" })
        assert.isFalse(created.replayed)
        const { task_id } = created
        const waiting = yield* Effect.forkChild(
          useTool(user, "get_task", { task_id, wait_seconds: 45 })
        )
        yield* advance("2 seconds")
        assert.isUndefined(waiting.pollUnsafe())
        const made = yield* ended(waiting)
        const { results, ...task } = made.structuredContent
        assert.deepInclude(task, { status: "completed", cost: "7.50", error: null })
        assert.deepStrictEqual(task.metadata, metadata)
        assert.deepStrictEqual(typesOf(made), ["text", "resource_link", "image"])
        const [, link, image] = made.content
        assert.strictEqual(link.uri, results[0].url)
        assert.deepInclude(results[0], { media_type: "image/png", shown: true })
        assert.strictEqual(Buffer.from(image.data, "base64").length, results[0].size)
        const http = yield* user.call("GET", `${path}/${task_id}`)
        assert.strictEqual(http.json.images[0], results[0].url)
        const links = yield* useTool(user, "get_task", { task_id, include_images: false })
        assert.deepStrictEqual(typesOf(links), ["text", "resource_link"])
        const call = { name: "get_task", arguments: { task_id } }
        const older = yield* rpc(user, "tools/call", call, {})
        assert.deepStrictEqual(typesOf(older.json.result), ["text", "image"])
        const wallet = yield* useTool(user, "wallet")
        assert.deepInclude(wallet.structuredContent, {
          settled_balance: "992.50",
          held_balance: "0.00"
        })
        const over = yield* failTool(user, "cancel_task", { task_id })
        assert.strictEqual(over.code, 2010)
      })
    )

    it.effect(
      "buy once for equal arguments, however often they are called and on the model's own path too",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const input = { prompt: "b [hang]", seed: 7 }
          const calls = yield* Effect.all(
            Array.from({ length: 5 }, () => useTool(user, "create_task", { model, input })),
            { concurrency: "unbounded" }
          )
          const again = yield* useTool(user, "create_task", {
            input: { seed: 7, prompt: "b [hang]" },
            model: `alibaba/${model}`
          })
          const ids = [...calls, again].map((it) => it.structuredContent.task_id)
          assert.lengthOf(new Set(ids), 1)
          assert.strictEqual(calls.filter((it) => !it.structuredContent.replayed).length, 1)
          assert.isTrue(again.structuredContent.replayed)
          assert.strictEqual(again.structuredContent.cost, "7.50")
          assert.lengthOf(yield* tasksOf(user), 1)
          // Another key, other metadata or other input is another purchase
          const idempotency_key = "second"
          const others = [
            { model, input, idempotency_key },
            { model, input, metadata: { a: "b" } },
            { model, input: { ...input, seed: 8 } }
          ]
          for (const args of others) {
            const { structuredContent } = yield* useTool(user, "create_task", args)
            assert.isFalse(structuredContent.replayed)
          }
          assert.lengthOf(yield* tasksOf(user), 4)
          const reused = yield* failTool(user, "create_task", buy("other", { idempotency_key }))
          assert.strictEqual(reused.code, 2008)
          // The same key on the model's own path is the same purchase
          const http = yield* user.call("POST", path, input, { "idempotency-key": idempotency_key })
          assert.strictEqual(http.headers.get("idempotency-replayed"), "true")
          const stranger = yield* makeUser()
          const own = yield* useTool(stranger, "create_task", { model, input })
          assert.isFalse(own.structuredContent.replayed)
        })
    )

    it.effect("are refused like calls of the HTTP API, and then buy nothing", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const tooExpensive = yield* failTool(user, "create_task", buy("c", { max_cost: "7.49" }))
        assert.strictEqual(tooExpensive.code, 1103)
        const twice = { prompt: "c", metadata: { a: "b" } }
        const given = yield* failTool(user, "create_task", {
          model,
          input: twice,
          metadata: { a: "b" }
        })
        assert.strictEqual(given.errors[0].pointer, "#/input/metadata")
        const poor = yield* makeUser({ credits: 1 })
        assert.strictEqual((yield* failTool(poor, "create_task", buy("c"))).code, 1101)
        const keys = "/manage/v1/api-keys"
        const made = yield* user.call("POST", keys, { name: "narrow", scopes: ["inference"] })
        const limit = { allowed_models: ["image-edit"] }
        const { status } = yield* user.call("PATCH", `${keys}/${made.json.id}`, limit)
        assert.strictEqual(status, 200)
        const narrow: Caller = {
          call: (method, at, body, headers) =>
            user.call(method, at, body, {
              ...headers,
              authorization: `Bearer ${made.json.key}`
            })
        }
        const other = yield* failTool(narrow, "create_task", buy("c"))
        assert.deepInclude(other, {
          code: 1004,
          detail: `This API key does not allow the model ${model}`
        })
        assert.match(other.remedy, /a key that allows the model/u)
        assert.strictEqual((yield* failTool(narrow, "quote", buy("c"))).code, 1004)
        const listed = yield* useTool(narrow, "list_models")
        assert.deepStrictEqual(
          listed.structuredContent.models.map((it: { model: string }) => it.model),
          ["alibaba/image-edit"]
        )
        assert.lengthOf(yield* tasksOf(user), 0)
      })
    )

    it.effect("cancel a task, wait no longer than requested, and show a user only its own", () =>
      Effect.gen(function* () {
        const [user, stranger] = [yield* makeUser(), yield* makeUser()]
        const { structuredContent: created } = yield* useTool(user, "create_task", buy("d [hang]"))
        const { task_id } = created
        const waiting = yield* Effect.forkChild(
          useTool(user, "get_task", { task_id, wait_seconds: 3 })
        )
        yield* advance("4 seconds")
        const seen = (yield* Fiber.join(waiting)).structuredContent
        assert.strictEqual(seen.status, "processing")
        assert.include(seen.next, "wait_seconds")
        // The waits of a batch would add up
        const get = { name: "get_task", arguments: { task_id, wait_seconds: 45 } }
        const batch = [1, 2].map((id) => ({
          jsonrpc: "2.0",
          id,
          method: "tools/call",
          params: get
        }))
        const polled = yield* user.call("POST", "/mcp", batch)
        assert.lengthOf(polled.json, 2)
        assert.strictEqual(polled.json[1].result.structuredContent.status, "processing")
        const over = yield* failTool(user, "get_task", { task_id, wait_seconds: 46 })
        assert.strictEqual(over.errors[0].pointer, "#/wait_seconds")
        for (const tool of ["get_task", "cancel_task"]) {
          assert.strictEqual((yield* failTool(stranger, tool, { task_id })).code, 2005, tool)
        }
        assert.strictEqual(
          (yield* failTool(stranger, "explain_delivery", { id: task_id })).code,
          2005
        )
        const cancelled = (yield* useTool(user, "cancel_task", { task_id })).structuredContent
        assert.deepInclude(cancelled, { status: "failed", cost: "0.00" })
        assert.strictEqual(cancelled.error.code, 4004)
        assert.isString(cancelled.error.meaning)
        const wallet = (yield* useTool(user, "wallet")).structuredContent
        assert.deepInclude(wallet, { settled_balance: "1000.00", held_balance: "0.00" })
        // A task that failed is returned to a caller that asks for the same, and bought again with another key
        const same = (yield* useTool(user, "create_task", buy("d [hang]"))).structuredContent
        assert.deepInclude(same, { task_id, status: "failed", replayed: true })
        assert.include(same.next, "idempotency_key")
      })
    )

    it.effect(
      "explain what a delivery sent and when, what the receiver returned and what happens next",
      () =>
        Effect.gen(function* () {
          const [user, stranger] = [yield* makeUser(), yield* makeUser()]
          const { id, secret } = yield* endpoint(user, "https://127.0.0.1/hook?token=abc")
          const { structuredContent: created } = yield* useTool(
            user,
            "create_task",
            buy("e [hang]")
          )
          yield* advance("1 second")
          const ofTask = yield* useTool(user, "explain_delivery", { id: created.task_id })
          const { deliveries, explanation } = ofTask.structuredContent
          assert.lengthOf(deliveries, 1)
          const [delivery] = deliveries
          assert.deepInclude(delivery, {
            status: "pending",
            endpoint_id: id,
            endpoint_url: "https://127.0.0.1/hook",
            task_id: created.task_id
          })
          assert.deepInclude(delivery.attempts[0], { seq: 1, status: 500, failure: "http_status" })
          assert.include(explanation, "HTTP 500")
          assert.include(explanation, "Attempt 2 of 6 is due at")
          assert.strictEqual(JSON.parse(delivery.body).type, "task.created")
          for (const secretText of [secret, "token=abc"]) {
            assert.notInclude(JSON.stringify(ofTask), secretText)
          }
          yield* advance("16 seconds")
          for (const which of [delivery.delivery_id, delivery.event_id]) {
            const told = (yield* useTool(user, "explain_delivery", { id: which })).structuredContent
            assert.lengthOf(told.deliveries, 1)
            assert.deepInclude(told.deliveries[0], {
              delivery_id: delivery.delivery_id,
              status: "succeeded"
            })
            assert.include(told.explanation, "Nothing more is sent: the receiver accepted it.")
            assert.strictEqual(
              (yield* failTool(stranger, "explain_delivery", { id: which })).code,
              2005
            )
          }
          const wrong = yield* failTool(user, "explain_delivery", { id: "nonsense" })
          assert.strictEqual(wrong.errors[0].pointer, "#/id")
          const other = yield* useTool(stranger, "create_task", buy("f [hang]"))
          const none = yield* useTool(stranger, "explain_delivery", {
            id: other.structuredContent.task_id
          })
          assert.lengthOf(none.structuredContent.deliveries, 0)
          assert.include(none.structuredContent.explanation, "no enabled endpoint")
        })
    )

    it.effect("show small pictures, and large ones only as links", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { task_id } = (yield* useTool(user, "create_task", {
          model: "text-to-image-preview",
          input: { prompt: "g", n: 2 }
        })).structuredContent
        yield* advance("3 seconds")
        const made = yield* eventually(
          useTool(user, "get_task", { task_id }),
          (it) => it.structuredContent.status === "completed"
        )
        assert.deepStrictEqual(typesOf(made), ["text", "resource_link", "image", "resource_link"])
        assert.deepStrictEqual(
          made.structuredContent.results.map((it: { shown: boolean }) => it.shown),
          [true, false]
        )
      })
    )
  })

  it.effect("count against the key's request rate, and protocol messages against the user's", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      for (const prompt of ["h", "i"]) yield* useTool(user, "quote", buy(prompt))
      const limited = yield* failTool(user, "quote", buy("j"))
      assert.strictEqual(limited.code, 1201)
      assert.isAbove(limited.retry_after_seconds, 0)
      for (const method of ["ping", "tools/list", "nothing"]) {
        assert.strictEqual((yield* rpc(user, method)).status, 200)
      }
      const refused = yield* rpc(user, "ping")
      assert.deepInclude(refused.json, { status: 429, code: 1201 })
      assert.isTrue(refused.headers.has("retry-after"))
      // Requests refused before the rate check are counted too
      assert.strictEqual((yield* failTool(user, "quote", { model: 1 })).code, 1201)
      const manager = yield* makeUser({ scopes: ["manage"] })
      for (const code of [1004, 1004, 1004, 1201]) {
        assert.strictEqual((yield* failTool(manager, "quote", buy("k"))).code, code)
      }
      for (const params of [
        { arguments: 7 },
        { _meta: { "io.modelcontextprotocol/protocolVersion": "1" } }
      ]) {
        const got = yield* rpc(user, "tools/call", { name: "quote", ...params })
        assert.deepInclude(got.json, { status: 429, code: 1201 })
      }
    }).pipe(
      Effect.provide(
        layerGateway({ env: { RATE_LIMIT_PER_MINUTE: "2", MANAGE_RATE_LIMIT_PER_MINUTE: "3" } })
      )
    )
  )

  it.effect(
    "are served by any process: one creates a task and another one returns its result",
    () =>
      Effect.gen(function* () {
        const database = Layer.succeedContext(yield* Layer.build(startedDatabase))
        // The variable says that the store is shared
        const env = { DATABASE_URL: "postgres://localhost/shared" }
        const start = Layer.build(Layer.fresh(layerGateway({ database, env, vendor })))
        const [one, two] = [yield* start, yield* start]
        yield* Effect.gen(function* () {
          const made = yield* makeUser()
          const gateways = [one, two]
          let turn = 0
          const user: Caller = {
            call: (...request) =>
              made.call(...request).pipe(Effect.provide(gateways[(turn += 1) % 2]!))
          }
          yield* rpc(user, "initialize", {
            protocolVersion: "2025-11-25",
            capabilities: {},
            clientInfo: { name: "test", version: "1" }
          })
          const created = yield* Effect.all(
            Array.from({ length: 4 }, () => useTool(user, "create_task", buy("k"))),
            { concurrency: "unbounded" }
          )
          const ids = new Set(created.map((it) => it.structuredContent.task_id))
          assert.lengthOf(ids, 1)
          const [task_id] = ids
          const waiting = yield* Effect.forkChild(
            Effect.forEach([1, 2], () => useTool(user, "get_task", { task_id, wait_seconds: 30 }), {
              concurrency: "unbounded"
            })
          )
          for (const it of yield* ended(waiting)) {
            assert.strictEqual(it.structuredContent.status, "completed")
          }
          assert.lengthOf(yield* tasksOf(user), 1)
        }).pipe(Effect.provide(one))
      }).pipe(Effect.scoped)
  )
})
