import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentOpenResponses } from "../../../src/process/OpenResponses.ts"
import { cookieOf, ownPage, signedIn, signIn } from "../../support/browser.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { rpc } from "../../support/mcp.ts"
import { beginPost } from "../../support/slowBody.ts"
import { startedDatabase } from "../../support/stores.ts"
import { until } from "../../support/until.ts"

/** Clients that wait for a task when their key, session or user ends. docs/reference/keys-and-limits.md#revocation */

const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const slow = { prompt: "[[sim:slow=60s]]" }
type User = Effect.Success<ReturnType<typeof makeUser>>
type Call = User["call"]

/** A request that waits for the task, and its response if the access ends first. */
const waits: Record<
  string,
  readonly [
    ask: (call: Call, task: string) => ReturnType<Call>,
    refused: (answer: HttpResult) => void
  ]
> = {
  "GET with Prefer: wait": [
    (call, task) => call("GET", task, undefined, { ...ownPage, prefer: "wait=60" }),
    ({ json, status }) => {
      assert.strictEqual(status, 401)
      assert.include([1002, 1003, 1006], json.code)
    }
  ],
  "an event stream": [
    (call, task) => call("GET", task, undefined, { ...ownPage, accept: "text/event-stream" }),
    ({ text }) => assert.notInclude(text, "completed")
  ],
  "a create with Prefer: wait": [
    (call) => call("POST", image, slow, { ...ownPage, prefer: "wait=60" }),
    ({ json, status }) => {
      assert.strictEqual(status, 202)
      assert.isUndefined(json.task_info.status)
    }
  ],
  "images in OpenAI's shape": [
    (call) =>
      call("POST", "/v1/images/generations", { model: "text-to-image-max", ...slow }, ownPage),
    ({ json, status }) => assert.deepStrictEqual([status, json.code], [424, 2017])
  ],
  "a response that streams in the background": [
    (call) => {
      const asked = { model: "gpt-4o-mini", input: slow.prompt, background: true, stream: true }
      return call("POST", "/v1/responses", asked, ownPage)
    },
    ({ status, text }) => {
      assert.strictEqual(status, 200)
      assert.notInclude(text, "response.completed")
    }
  ]
}

const byMcp = {
  "get_task of MCP": [
    (call: Call, task: string) =>
      rpc({ call }, "tools/call", {
        name: "get_task",
        arguments: { task_id: task.split("/").at(-1), wait_seconds: 45 }
      }),
    ({ json }: HttpResult) => {
      assert.isTrue(json.result.isError)
      assert.include([1002, 1003], JSON.parse(json.result.content[0].text).code)
    }
  ]
} as const

/** With SQL statements, like another process whose hint was lost. */
const change =
  (statement: (sql: SqlClient.SqlClient, user: User) => Effect.Effect<unknown, unknown>) =>
  (user: User) =>
    Effect.orDie(Effect.flatMap(SqlClient.SqlClient, (sql) => statement(sql, user)))

const asOperator = (method: string, suffix: string, body?: unknown) => (user: User) =>
  operator(method, `/manage/v1/users/${user.id}${suffix}`, body)

const endings = {
  "the key is revoked": change(
    (sql, { id }) => sql`UPDATE api_keys SET revoked_at = created_at WHERE user_id = ${id}`
  ),
  "the key expires": change((sql, { id }) =>
    Effect.flatMap(
      DateTime.now,
      (now) =>
        sql`UPDATE api_keys SET expires_at = ${DateTime.toDateUtc(now)} WHERE user_id = ${id}`
    )
  ),
  "the key is rotated": change(
    (sql, { id }) => sql`UPDATE api_keys SET key_hash = id::bytea, previous_key_hash = key_hash,
      rotations = rotations + 1 WHERE user_id = ${id}`
  ),
  "the user is disabled": asOperator("PATCH", "", { disabled: true }),
  "the user is deleted": asOperator("DELETE", "")
}

const beginAll = Effect.fnUntraced(function* (
  ways: Record<string, (typeof waits)[string]>,
  call: Call
) {
  const made = yield* call("POST", image, slow, ownPage)
  const task = `${image}/${made.json.task_info.id}`
  const open = Effect.map(CurrentOpenResponses, ({ count }) => count)
  const before = yield* open
  const begun = yield* Effect.forEach(Object.entries(ways), ([name, [ask, refused]]) =>
    Effect.map(Effect.forkChild(ask(call, task)), (fiber) => ({ name, fiber, refused }))
  )
  yield* eventually(open, (count) => count === before + begun.length)
  return begun
})

/** All end within a second, and none has the result. */
const assertOver = Effect.fnUntraced(function* (
  begun: Effect.Success<ReturnType<typeof beginAll>>
) {
  yield* advance("1 second", "500 millis")
  for (const { fiber, name, refused } of begun) {
    // Without advancing the clock, because the statements take a while on a busy machine
    yield* Effect.promise(() =>
      until(() => fiber.pollUnsafe() !== undefined, { what: `the end of ${name}` })
    )
    const answer = yield* Fiber.join(fiber)
    assert.notInclude(answer.text, "signature=", name)
    refused(answer)
  }
})

const message = { model: "claude-haiku-4-5", max_tokens: 1, messages: [] }

/** Requests that create something, each with its path, its body and the type of its body. */
const creates = {
  "a task": [image, slow],
  "a batch of tasks": [
    "/manage/v1/task-batches",
    { tasks: [{ vendor: "alibaba", model: "text-to-image-max", body: slow }] }
  ],
  "a video": ["/v1/videos", { model: "text-to-video-spark", ...slow }],
  "a response in the background": [
    "/v1/responses",
    { model: "gpt-4o-mini", input: slow.prompt, background: true }
  ],
  "a batch of messages": [
    "/v1/messages/batches",
    { requests: [{ custom_id: "a", params: message }] }
  ],
  "a file": [
    "/v1/files",
    Buffer.from(
      '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n' +
        '--b\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{}\r\n--b--\r\n'
    ),
    "multipart/form-data; boundary=b"
  ]
} satisfies Record<string, readonly [path: string, body: unknown, type?: string]>

/** Messages of MCP, each with the parameters of its call. */
const messages = {
  "a task by MCP": {
    name: "create_task",
    arguments: { model: "alibaba/text-to-image-max", input: slow }
  },
  "the wallet by MCP": { name: "wallet" },
  "the models by MCP": { name: "list_models" }
}

/** Requests that only a key or a token can send. */
const sent: Record<string, readonly [path: string, body: unknown]> = Object.fromEntries(
  Object.entries(messages).map(([what, params]) => [
    what,
    ["/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params }]
  ])
)

/** Other requests that buy something. */
const bought = {
  "an image": ["/v1/images/generations", { model: "text-to-image-max", ...slow }],
  "a vendor's batch": [
    "/v1/batches",
    { input_file_id: "file-a", endpoint: "/v1/responses", completion_window: "24h" }
  ],
  "a call": ["/v1/messages", message],
  "a transcription": [
    "/v1/audio/transcriptions",
    Buffer.from(
      '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n' +
        '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\r\n--b--\r\n'
    ),
    "multipart/form-data; boundary=b"
  ]
} satisfies Record<string, readonly [path: string, body: unknown, type?: string]>

layer(layerGateway({ database: startedDatabase }), { timeout: "60 seconds" })(
  "access that ends",
  (it) => {
    for (const [name, end] of Object.entries(endings)) {
      it.effect(`ends every wait within a second: ${name}`, () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const begun = yield* beginAll({ ...waits, ...byMcp }, user.call)
          yield* advance("3 seconds")
          for (const { fiber, name } of begun) assert.isUndefined(fiber.pollUnsafe(), name)
          const ending = yield* Effect.forkChild(end(user))
          yield* assertOver(begun)
          yield* Fiber.join(ending)
        })
      )
    }

    for (const [name, end] of Object.entries(endings)) {
      it.effect(`creates nothing from a body that is still arriving: ${name}`, () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const late = yield* Effect.forEach(
            Object.entries({ ...creates, ...sent }),
            ([what, [path, body, type = "application/json"]]) => {
              const headers = { authorization: `Bearer ${user.key}`, "content-type": type }
              return Effect.map(beginPost(path, headers, body), (post) => ({ what, ...post }))
            }
          )
          const ending = yield* Effect.forkChild(end(user))
          yield* advance("200 millis")
          yield* Fiber.join(ending)
          for (const { finish, what } of late) {
            const { json, status } = yield* finish
            assert.deepStrictEqual([status, json.code], [401, 1003], `${what}: ${json.detail}`)
          }
          const sql = yield* SqlClient.SqlClient
          const made = sql`SELECT id::text FROM tasks WHERE user_id = ${user.id}
            UNION ALL SELECT id FROM files WHERE user_id = ${user.id}`
          assert.isEmpty(yield* made)
        })
      )
    }

    for (const [name, end] of Object.entries({
      "is signed out": (page: Effect.Success<ReturnType<typeof signedIn>>) =>
        page.call("DELETE", "/manage/v1/session"),
      "loses its user's password": (_page: unknown, user: User) =>
        asOperator("PATCH", "", { password: null })(user)
    })) {
      it.effect(`ends every wait within a second: a session ${name}`, () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const [email, password] = [`${user.id}@example.com`, "correct horse battery"]
          yield* asOperator("PATCH", "", { email, password })(user)
          const page = yield* signedIn({ email, password })
          const begun = yield* beginAll(waits, page.call)
          yield* advance("3 seconds")
          for (const { fiber, name } of begun) assert.isUndefined(fiber.pollUnsafe(), name)
          yield* end(page, user)
          yield* assertOver(begun)
        })
      )
    }

    it.effect(
      "a session that has ended creates and buys nothing from a body that is still arriving",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const [email, password] = [`${user.id}@example.com`, "correct horse battery"]
          yield* asOperator("PATCH", "", { email, password })(user)
          const cookie = cookieOf(yield* signIn({ email, password }))
          const late = yield* Effect.forEach(
            Object.entries({ ...creates, ...bought }),
            ([what, [path, body, type = "application/json"]]) => {
              const headers = { ...ownPage, cookie, "content-type": type }
              return Effect.map(beginPost(path, headers, body), (post) => ({ what, ...post }))
            }
          )
          yield* asOperator("PATCH", "", { password: null })(user)
          const answers = yield* Effect.forEach(late, ({ finish, what }) =>
            Effect.map(finish, ({ json, status }) => [what, status, json.code])
          )
          assert.deepStrictEqual(
            answers,
            late.map(({ what }) => [what, 401, 1006])
          )
        })
    )

    it.effect("a task that ends right after its key shows no result", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const begun = yield* beginAll({ ...waits, ...byMcp }, user.call)
        yield* advance("9 seconds")
        yield* endings["the key is revoked"](user)
        const sql = yield* SqlClient.SqlClient
        yield* sql`
        UPDATE tasks SET status = 'completed', result = '["https://a/?signature=x"]'::jsonb, captured = price
        WHERE user_id = ${user.id}`
        yield* assertOver(begun)
      })
    )
  }
)
