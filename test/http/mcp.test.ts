import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  baseUrl,
  callWith,
  GatewayHttp,
  layerGateway,
  makeUser,
  readResult
} from "../support/gateway.ts"
import { failTool, rpc, useTool } from "../support/mcp.ts"

const stateless = (method: string, name?: string) => ({
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": method,
  ...(name === undefined ? {} : { "mcp-name": name })
})

const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {}
}

const hello = (protocolVersion: string) => ({
  protocolVersion,
  capabilities: {},
  clientInfo: { name: "test", version: "1" }
})

/** Sends a text unchanged. */
const send = (key: string, body: string, headers: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const http = yield* GatewayHttp
    const answer = yield* http.fetch("/mcp", {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        ...headers
      },
      body
    })
    return yield* Effect.promise(() => readResult(answer))
  })

interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: object
  readonly outputSchema: object
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
  }
}

const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
const old = { "mcp-protocol-version": "2025-03-26" }
const newer = { "mcp-protocol-version": "2025-11-25" }

/** docs/reference/mcp.md */
layer(layerGateway({ env: { MAX_BODY_BYTES: "20000" } }), { timeout: "60 seconds" })(
  "the MCP server",
  (it) => {
    it.effect("agrees on a version, and creates no session", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        for (const [asked, agreed] of [
          ["2025-11-25", "2025-11-25"],
          ["2025-06-18", "2025-06-18"],
          ["2025-03-26", "2025-03-26"],
          ["2024-11-05", "2025-11-25"],
          ["2099-01-01", "2025-11-25"]
        ]) {
          const got = yield* rpc(user, "initialize", hello(asked!), {})
          assert.strictEqual(got.status, 200, got.text)
          assert.strictEqual(got.json.result.protocolVersion, agreed)
          assert.deepStrictEqual(got.json.result.capabilities, { tools: {} })
          assert.isString(got.json.result.instructions)
          assert.isFalse(got.headers.has("mcp-session-id"))
          assert.strictEqual(got.headers.get("cache-control"), "no-store")
        }
        const wrong = yield* rpc(user, "initialize", { protocolVersion: 5 }, {})
        assert.strictEqual(wrong.json.error.code, -32602)
        assert.sameMembers(
          wrong.json.error.data.errors.map(({ pointer }: { pointer: string }) => pointer),
          ["#/protocolVersion", "#/capabilities", "#/clientInfo"]
        )
        for (const method of ["GET", "DELETE", "PUT", "OPTIONS"]) {
          const got = yield* user.call(method, "/mcp")
          assert.deepInclude(got.json, { status: 405, code: 2007 }, method)
          assert.strictEqual(got.headers.get("allow"), "POST")
        }
        // A client that kept an id from another server is served
        const kept = yield* user.call("POST", "/mcp", ping, { "mcp-session-id": "abc" })
        assert.deepStrictEqual(kept.json, { jsonrpc: "2.0", id: 1, result: {} })
      })
    )

    it.effect("answers notifications and responses with 202 and no body", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        for (const message of [
          { method: "notifications/initialized" },
          { method: "notifications/cancelled", params: { requestId: 1 } },
          { id: 1, result: {} },
          { id: "a", error: { code: -1, message: "no" } }
        ]) {
          const got = yield* user.call("POST", "/mcp", { jsonrpc: "2.0", ...message }, newer)
          assert.deepStrictEqual([got.status, got.text], [202, ""], JSON.stringify(message))
        }
      })
    )

    it.effect("serves 2026-07-28 without initialize, by the metadata of each request", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const found = yield* rpc(
          user,
          "server/discover",
          { _meta: meta },
          stateless("server/discover")
        )
        const { result } = found.json
        assert.strictEqual(result.supportedVersions[0], "2026-07-28")
        assert.deepInclude(result, { resultType: "complete", cacheScope: "private" })
        assert.isAbove(result.ttlMs, 0)
        const listed = yield* rpc(user, "tools/list", { _meta: meta }, stateless("tools/list"))
        assert.lengthOf(listed.json.result.tools, 7)
        assert.deepInclude(listed.json.result, { resultType: "complete", cacheScope: "private" })
        const args = { name: "wallet", arguments: {}, _meta: meta }
        for (const name of ["wallet", "=?base64?d2FsbGV0?="]) {
          const got = yield* rpc(user, "tools/call", args, stateless("tools/call", name))
          assert.strictEqual(got.json.result.structuredContent.settled_balance, "1000.00")
          assert.strictEqual(got.json.result.resultType, "complete")
          assert.strictEqual(
            got.json.result._meta["io.modelcontextprotocol/serverInfo"].name,
            "generation-gateway"
          )
        }
        for (const method of ["initialize", "ping", "subscriptions/listen", "resources/list"]) {
          const got = yield* rpc(user, method, { _meta: meta }, stateless(method))
          assert.deepStrictEqual([got.status, got.json.error.code], [404, -32601], method)
        }
      })
    )

    it.effect("refuses requests whose headers, metadata and versions contradict each other", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const call = { name: "wallet", _meta: meta }
        const other = { ...meta, "io.modelcontextprotocol/protocolVersion": "2025-11-25" }
        const unknown = { ...meta, "io.modelcontextprotocol/protocolVersion": "2099-01-01" }
        const without = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" }
        const cases: ReadonlyArray<[string, unknown, Record<string, string>, number]> = [
          ["ping", {}, { "mcp-protocol-version": "1999-01-01" }, -32022],
          ["tools/list", { _meta: meta }, {}, -32020],
          ["tools/list", { _meta: other }, stateless("tools/list"), -32020],
          ["tools/list", { _meta: meta }, stateless("tools/call"), -32020],
          ["tools/list", { _meta: meta }, { "mcp-protocol-version": "2026-07-28" }, -32020],
          ["tools/list", {}, stateless("tools/list"), -32602],
          ["tools/list", { _meta: without }, stateless("tools/list"), -32602],
          ["tools/list", { _meta: unknown }, { "mcp-protocol-version": "2099-01-01" }, -32022],
          ["tools/call", call, stateless("tools/call"), -32020],
          ["tools/call", call, stateless("tools/call", "quote"), -32020]
        ]
        for (const [method, params, headers, code] of cases) {
          const got = yield* rpc(user, method, params, headers)
          const what = `${method} ${JSON.stringify(params)} ${JSON.stringify(headers)}`
          assert.deepStrictEqual([got.status, got.json.error?.code], [400, code], what)
          assert.isNumber(got.json.id, what)
        }
        const got = yield* rpc(user, "ping", {}, { "mcp-protocol-version": "1999-01-01" })
        assert.include(got.json.error.data.supported, "2025-11-25")
        const missing = yield* rpc(user, "prompts/list")
        assert.deepStrictEqual([missing.status, missing.json.error.code], [200, -32601])
      })
    )

    it.effect("names what is malformed in a request, and does nothing for it", () =>
      Effect.gen(function* () {
        const { key } = yield* makeUser()
        for (const [body, code] of [
          ["", -32700],
          ["{", -32700],
          ["7", -32600],
          ["null", -32600],
          ['{"id":1,"method":"ping"}', -32600],
          ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
          ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
          ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
          // It would be returned as 12345678901234567000
          ['{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}', -32600],
          ['{"jsonrpc":"2.0","id":1,"method":7}', -32600],
          ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600],
          ['{"jsonrpc":"2.0","id":1}', -32600],
          ['{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600]
        ] as const) {
          const got = yield* send(key, body)
          assert.deepStrictEqual([got.status, got.json.error?.code], [400, code], body)
          assert.strictEqual(got.json.jsonrpc, "2.0")
        }
        const text = yield* send(key, JSON.stringify(ping), { "content-type": "text/plain" })
        assert.deepInclude(text.json, { status: 415, code: 2003 })
        const large = yield* send(
          key,
          JSON.stringify({ ...ping, params: { a: "x".repeat(20_000) } })
        )
        assert.deepInclude(large.json, { status: 413, code: 2004 })
        const query = yield* callWith(key)("POST", "/mcp?key=1", ping)
        assert.deepInclude(query.json, { status: 400, code: 2001 })
      })
    )

    it.effect("accepts batches only of 2025-03-26, and of at most ten messages", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const batch = [
          ping,
          { jsonrpc: "2.0", method: "notifications/initialized" },
          { jsonrpc: "2.0", id: "b", method: "tools/call", params: { name: "wallet" } },
          { jsonrpc: "2.0", id: 3, method: "nothing" }
        ]
        for (const headers of [{}, old]) {
          const got = yield* user.call("POST", "/mcp", batch, headers)
          assert.strictEqual(got.status, 200)
          assert.deepStrictEqual(
            got.json.map((it: { id: unknown }) => it.id),
            [1, "b", 3]
          )
          assert.isDefined(got.json[1].result.structuredContent)
          assert.strictEqual(got.json[2].error.code, -32601)
        }
        const notices = yield* user.call("POST", "/mcp", [batch[1]], old)
        assert.strictEqual(notices.status, 202)
        const begin = { jsonrpc: "2.0", id: 1, method: "initialize", params: hello("2025-03-26") }
        for (const [messages, headers] of [
          [batch, newer],
          [batch, { "mcp-protocol-version": "2026-07-28" }],
          [[], old],
          [Array.from({ length: 11 }, () => ping), old],
          [[begin], old]
        ] as const) {
          const got = yield* user.call("POST", "/mcp", messages, headers)
          assert.deepStrictEqual([got.status, got.json.error.code], [400, -32600])
        }
      })
    )

    it.effect("refuses other origins and every caller without a valid key", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        for (const origin of ["https://evil.test", "null", "http://gateway.test:81"]) {
          const got = yield* user.call("POST", "/mcp", ping, { origin, host: "evil.test" })
          assert.deepInclude(got.json, { status: 403, code: 1007 }, origin)
        }
        const own = yield* user.call("POST", "/mcp", ping, { origin: baseUrl })
        assert.strictEqual(own.status, 200)
        const none = yield* callWith(undefined)("POST", "/mcp", ping)
        assert.deepInclude(none.json, { status: 401, code: 1001 })
        assert.strictEqual(none.headers.get("www-authenticate"), "Bearer")
        const inQuery = yield* callWith(undefined)("POST", "/mcp", ping, { "x-api-key": user.key })
        assert.strictEqual(inQuery.json.code, 1001)
        for (const token of ["sk-nonsense", "operator-token-of-the-tests"]) {
          const got = yield* callWith(token)("POST", "/mcp", ping)
          assert.deepInclude(got.json, { status: 401, code: 1002 })
        }
      })
    )

    it.effect("lists the tools of the key's scopes, with schemas and hints", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { json } = yield* rpc(user, "tools/list")
        const tools: ReadonlyArray<ListedTool> = json.result.tools
        const names = tools.map(({ name }) => name)
        assert.deepStrictEqual(names, [
          "list_models",
          "quote",
          "create_task",
          "get_task",
          "cancel_task",
          "wallet",
          "explain_delivery"
        ])
        for (const tool of tools) {
          const closed = { type: "object", additionalProperties: false }
          assert.deepInclude(tool.inputSchema, closed, tool.name)
          const open = { type: "object", additionalProperties: true }
          assert.deepInclude(tool.outputSchema, open, tool.name)
          assert.isString(tool.title)
          assert.isAbove(tool.description.length, 40)
        }
        const hints = Object.fromEntries(
          tools.map(({ annotations: a, name }) => [
            name,
            [a.readOnlyHint, a.destructiveHint, a.idempotentHint]
          ])
        )
        const reads = [true, false, true]
        assert.deepStrictEqual(hints, {
          list_models: reads,
          quote: reads,
          create_task: [false, false, true],
          get_task: reads,
          cancel_task: [false, true, true],
          wallet: reads,
          explain_delivery: reads
        })
        const further = yield* rpc(user, "tools/list", { cursor: "abc" })
        assert.strictEqual(further.json.error.code, -32602)
        const [buyer, manager] = [
          yield* makeUser({ scopes: ["inference"] }),
          yield* makeUser({ scopes: ["manage"] })
        ]
        const namesOf = (caller: typeof user) =>
          Effect.map(rpc(caller, "tools/list"), (it) =>
            it.json.result.tools.map(({ name }: { name: string }) => name)
          )
        assert.deepStrictEqual(yield* namesOf(buyer), names.slice(0, 5))
        assert.deepStrictEqual(yield* namesOf(manager), ["list_models", ...names.slice(5)])
        assert.deepInclude(yield* failTool(buyer, "wallet"), { code: 1004 })
        const input = { prompt: "a" }
        const buy = { model: "text-to-image-max", input }
        assert.deepInclude(yield* failTool(manager, "create_task", buy), { code: 1004 })
      })
    )

    it.effect("names every fault of the arguments, so that a model can correct its call", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const unknown = yield* rpc(user, "tools/call", { name: "drop_tables" })
        assert.deepStrictEqual([unknown.status, unknown.json.error.code], [200, -32602])
        const nameless = yield* rpc(user, "tools/call", {})
        assert.strictEqual(nameless.json.error.data.errors[0].pointer, "#/name")
        const shape = yield* failTool(user, "create_task", {
          model: 7,
          more: 1,
          max_cost: "-1",
          // Postgres cannot store such a text
          idempotency_key: "a\u0000"
        })
        assert.strictEqual(shape.code, 2001)
        assert.match(shape.trace_id, /^[0-9a-f]{32}$/u)
        assert.isString(shape.remedy)
        assert.sameMembers(
          shape.errors.map(({ pointer }: { pointer: string }) => pointer),
          ["#/model", "#/input", "#/max_cost", "#/more", "#/idempotency_key"]
        )
        const body = yield* failTool(user, "quote", {
          model: "text-to-image-max",
          input: { prompt: "", seed: "x", promt: "y" }
        })
        assert.sameMembers(
          body.errors.map(({ pointer }: { pointer: string }) => pointer),
          ["#/input/prompt", "#/input/seed", "#/input/promt"]
        )
        const attached = yield* failTool(user, "create_task", {
          model: "text-to-image-max",
          input: { prompt: "a" },
          metadata: { "": "b" }
        })
        assert.match(attached.errors[0].pointer, /^#\/metadata/u)
        const wallet = yield* failTool(user, "wallet", { a: 1 })
        assert.strictEqual(wallet.errors[0].pointer, "#/a")
        const many = Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`f${n}`, n]))
        assert.lengthOf((yield* failTool(user, "wallet", many)).errors, 1)
        const nested = `{"prompt":${"[".repeat(9000)}${"]".repeat(9000)}}`
        const deep = yield* send(user.key, `{"params":{"arguments":{"input":${nested}}}}`, newer)
        assert.strictEqual(deep.json.error.code, -32700)
        assert.include(deep.json.error.message, "nested too deeply")
        const none = yield* failTool(user, "quote", { model: "no-such", input: {} })
        assert.strictEqual(none.code, 2006)
        assert.include(none.detail, "alibaba/text-to-image-max")
      })
    )

    it.effect("lists the models that the key may use, with price and schema, in pages", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const first = yield* useTool(user, "list_models", { limit: 4 })
        assert.lengthOf(first.structuredContent.models, 4)
        assert.deepStrictEqual(JSON.parse(first.content[0].text), first.structuredContent)
        const cursor = first.structuredContent.next_cursor
        const rest = (yield* useTool(user, "list_models", { cursor, limit: 50 })).structuredContent
        assert.isNull(rest.next_cursor)
        const names = [...first.structuredContent.models, ...rest.models].map(({ model }) => model)
        assert.lengthOf(new Set(names), 9)
        const found = yield* useTool(user, "list_models", { model: "text-to-image-max" })
        const [model] = found.structuredContent.models
        assert.deepInclude(model, { model: "alibaba/text-to-image-max", result: "images" })
        assert.deepStrictEqual(model.price, { per: "image", amount: "7.50" })
        assert.include(model.input_schema.required, "prompt")
        assert.isFalse(model.input_schema.additionalProperties)
        const videos = yield* useTool(user, "list_models", { result: "videos", limit: 50 })
        assert.isAbove(videos.structuredContent.models.length, 0)
        assert.strictEqual((yield* failTool(user, "list_models", { cursor: "x" })).code, 2001)
      })
    )
  }
)
