import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { advance, eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import type { Caller } from "../../support/mcp.ts"
import { taskRequest } from "../../support/mcpTasks.ts"

const model = "text-to-image-max"

const send = (
  user: Caller,
  method: string,
  params: Readonly<Record<string, unknown>>,
  options?: { declares?: boolean; name?: string }
) => {
  const { body, headers } = taskRequest(method, params, options)
  return user.call("POST", "/mcp", body, headers)
}

const create = (user: Caller, prompt: string, options?: { declares?: boolean }) =>
  send(
    user,
    "tools/call",
    { name: "create_task", arguments: { model, input: { prompt } } },
    options
  )

const created = (user: Caller, prompt: string) =>
  Effect.map(create(user, prompt), ({ json, text }) => {
    assert.strictEqual(json.result?.resultType, "task", text)
    return json.result.taskId as string
  })

/** The response of `tasks/get` after the task has ended. */
const ended = (user: Caller, taskId: string) =>
  eventually(
    Effect.map(
      Effect.andThen(advance("1 second"), send(user, "tasks/get", { taskId })),
      (it) => it.json.result
    ),
    ({ status }) => status !== "working"
  )

/** docs/reference/mcp.md#tasks */
describe("the tasks extension of MCP", () => {
  layer(layerGateway(), { timeout: "60 seconds" })((it) => {
    it.effect("makes a call of create_task a task with the finished image as its result", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { json: discovered } = yield* send(user, "server/discover", {})
        const extension = "io.modelcontextprotocol/tasks"
        assert.deepStrictEqual(discovered.result.capabilities.extensions, { [extension]: {} })
        const { json } = yield* create(user, "a")
        const { taskId, createdAt, lastUpdatedAt, ...handle } = json.result
        assert.deepInclude(handle, {
          resultType: "task",
          status: "working",
          ttlMs: 25 * 3_600_000,
          pollIntervalMs: 2000
        })
        assert.strictEqual(new Date(createdAt).toISOString(), createdAt)
        assert.isAtLeast(Date.parse(lastUpdatedAt), Date.parse(createdAt))
        const working = (yield* send(user, "tasks/get", { taskId })).json.result
        assert.deepInclude(working, { resultType: "complete", taskId, status: "working" })
        assert.notProperty(working, "result")
        const { result, status } = yield* ended(user, taskId)
        assert.strictEqual(status, "completed")
        assert.notProperty(result, "isError")
        assert.strictEqual(result.resultType, "complete")
        assert.deepInclude(result.structuredContent, { task_id: taskId, status: "completed" })
        assert.deepStrictEqual(
          result.content.map(({ type }: { type: string }) => type),
          ["text", "resource_link", "image"]
        )
        // The same arguments are the same purchase and return its handle
        assert.strictEqual((yield* create(user, "a")).json.result.taskId, taskId)
        const tasks = yield* user.call("GET", "/manage/v1/tasks")
        assert.lengthOf(tasks.json.data, 1)
      })
    )

    it.effect("shows a failed task as a failed call, and a cancelled one as cancelled", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const failed = yield* ended(user, yield* created(user, "[[sim:fail]]"))
        assert.strictEqual(failed.status, "completed")
        assert.isTrue(failed.result.isError)
        assert.strictEqual(failed.result.structuredContent.error.code, 3005)
        const taskId = yield* created(user, "[[sim:hang]]")
        for (let n = 0; n < 2; n += 1) {
          const { json } = yield* send(user, "tasks/cancel", { taskId })
          assert.strictEqual(json.result.resultType, "complete")
        }
        const cancelled = (yield* send(user, "tasks/get", { taskId })).json.result
        assert.strictEqual(cancelled.status, "cancelled")
        assert.notProperty(cancelled, "result")
        const wallet = yield* user.call("GET", "/manage/v1/wallet")
        assert.strictEqual(wallet.json.available_balance, "1000.00")
        const updated = yield* send(user, "tasks/update", { taskId, inputResponses: { a: {} } })
        assert.deepInclude(updated.json.result, { resultType: "complete" })
      })
    )

    it.effect("gives tasks only to clients that declare it, and only their own", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const plain = yield* create(user, "plain", { declares: false })
        const { resultType, structuredContent } = plain.json.result
        assert.strictEqual(resultType, "complete")
        const taskId = structuredContent.task_id
        for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
          const undeclared = yield* send(user, method, { taskId }, { declares: false })
          assert.strictEqual(undeclared.json.error.code, -32021)
          const misrouted = yield* send(user, method, { taskId }, { name: "other" })
          assert.strictEqual(misrouted.json.error.code, -32020)
          const stranger = yield* send(yield* makeUser(), method, { taskId })
          assert.strictEqual(stranger.json.error.code, -32602)
          const malformed = yield* send(user, method, { taskId: "x" })
          assert.strictEqual(malformed.json.error.code, -32602)
        }
        // Clients of other versions do not have these methods
        const older = yield* user.call(
          "POST",
          "/mcp",
          { jsonrpc: "2.0", id: 1, method: "tasks/get", params: { taskId } },
          { "mcp-protocol-version": "2025-11-25" }
        )
        assert.strictEqual(older.json.error.code, -32601)
      })
    )
  })

  layer(layerGateway({ env: { RATE_LIMIT_PER_MINUTE: "3" } }), { timeout: "60 seconds" })((it) => {
    it.effect("counts each poll against the request rate of the key", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const taskId = yield* created(user, "a")
        for (let n = 0; n < 2; n += 1) {
          assert.strictEqual((yield* send(user, "tasks/get", { taskId })).status, 200)
        }
        const refused = yield* send(user, "tasks/get", { taskId })
        assert.strictEqual(refused.status, 429)
        assert.strictEqual(refused.json.code, 1201)
        assert.isDefined(refused.headers.get("retry-after") ?? undefined)
      })
    )
  })
})
