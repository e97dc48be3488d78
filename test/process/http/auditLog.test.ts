import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { HttpApi } from "effect/http-api"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll } from "vitest"
import { Api } from "../../../src/contract/Api.ts"
import { makeAuthenticator } from "../../support/authenticator.ts"
import { ownPage, signedIn } from "../../support/browser.ts"
import {
  baseUrl,
  adminToken,
  callWith,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser
} from "../../support/gateway.ts"
import type { HttpResult } from "../../support/gateway.ts"
import { mockOpenAi, openAiScript } from "../../support/mockOpenAi.ts"
import { contents } from "../../support/tableContents.ts"

/** docs/reference/audit.md, for every route that writes. */

const manage = "/manage/v1"
const imagePath = "/vendors/alibaba/v1/text-to-image-max/generation"

/** Each request has a different time, so that entries are ordered. */
const at =
  (key: string) =>
  (method: string, path: string, body?: unknown, headers = {}) =>
    Effect.andThen(
      TestClock.adjust("10 millis"),
      callWith(key)(method, `${manage}${path}`, body, headers)
    )
const operator = at(adminToken)

const vendor = await mockOpenAi()
beforeAll(() => {
  vendor.script = openAiScript
})
afterAll(() => vendor.close())
const env = { OPENAI_API_KEY: `sk-secret-aaaa;name=a;base=${vendor.origin}/v1` }
const accountId = "openai:a"
const account = (suffix: string) => () => `/accounts/${accountId}${suffix}`

/** A user with an endpoint and an ended delivery. */
const makeWorld = Effect.gen(function* () {
  const owner = yield* makeUser()
  const call = at(owner.key)
  const url = "https://hooks.example.com/token-in-the-path"
  const hook = yield* call("POST", "/webhook-endpoints", { url, events: ["task.succeeded"] })
  const endpoint: string = hook.json.id
  const sent = yield* call("POST", `/webhook-endpoints/${endpoint}/test`)
  const delivery: string = sent.json.delivery_id
  yield* eventually(
    call("GET", `/webhook-deliveries/${delivery}`),
    ({ json }) => json.status === "succeeded"
  )
  // The deliveries that `recover` resends
  const sql = yield* SqlClient
  yield* sql`UPDATE deliveries SET status = 'failed' WHERE id = ${delivery}`
  const other = yield* call("POST", "/api-keys", { name: "to revoke" })
  const otherKey: string = other.json.id
  // Sign-in attempts are limited
  yield* sql`DELETE FROM request_buckets`
  yield* TestClock.adjust("10 millis")
  const { json: made } = yield* operator("POST", `/users/${owner.id}/sign-in-links`)
  yield* TestClock.adjust("10 millis")
  const browser = yield* signedIn({ link: made.url })
  const { json: asked } = yield* browser.call("GET", `${manage}/passkeys/options`)
  const party = { origin: baseUrl, rpId: new URL(baseUrl).hostname }
  const credential = makeAuthenticator(party).create(asked)
  const passkey = `pky_${owner.id}`
  yield* sql`
    INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, name, created_at)
    VALUES (${passkey}, ${owner.id}, ${Buffer.from(passkey)}, '', 0, 'Personal', to_timestamp(0))`
  return { credential, passkey, owner, call, endpoint, delivery, otherKey, browser }
})
type World = Effect.Success<typeof makeWorld>

interface Write {
  readonly as: "operator" | "user" | "page"
  readonly path: (world: World) => string
  readonly body?: (world: World) => unknown
  /** The changed fields as the log shows them. */
  readonly changes?: (world: World) => Readonly<Record<string, unknown>>
  readonly resource?: (world: World, answer: HttpResult) => string | null
  /** The entry names no single user. */
  readonly hasNoUser?: true
}

const past = "1969-12-31T00:00:00.000Z"
const future = "2099-01-01T00:00:00.000Z"
const endpointPath = (suffix: string) => (world: World) =>
  `/webhook-endpoints/${world.endpoint}${suffix}`
const ofUser = (suffix: string) => (world: World) => `/users/${world.owner.id}${suffix}`
const made = (_: World, answer: HttpResult) => answer.json.id
const owner = (world: World) => world.owner.id

/** One request per operation that writes. A new route needs one here. */
const writes: Readonly<Record<string, Write>> = {
  createUser: {
    as: "operator",
    path: () => "/users",
    body: (world) => ({
      email: `personal-${world.endpoint}@example.com`,
      name: "Personal",
      password: "secret-password"
    }),
    changes: () => ({ email: "[hidden]", name: "[hidden]", password: "[hidden]" }),
    resource: made
  },
  updateUser: {
    as: "operator",
    path: ofUser(""),
    body: (world) => ({
      name: "Personal",
      email: `new-personal-${world.endpoint}@example.com`,
      disabled: true,
      trigger_threshold: "12.00",
      rate_limit_per_minute: 60
    }),
    changes: () => ({
      name: "[hidden]",
      email: "[hidden]",
      disabled: true,
      trigger_threshold: "12.00",
      rate_limit_per_minute: 60
    }),
    resource: owner
  },
  deleteUser: { as: "operator", path: ofUser(""), resource: owner },
  createUserApiKey: {
    as: "operator",
    path: ofUser("/api-keys"),
    body: () => ({ name: "Personal", scopes: ["manage"] }),
    changes: () => ({ name: "[hidden]", scopes: ["manage"] }),
    resource: made
  },
  topUp: {
    as: "operator",
    path: ofUser("/top-ups"),
    body: () => ({ amount: "5.00", note: "Personal" }),
    changes: () => ({ amount: "5.00", note: "[hidden]" }),
    resource: owner
  },
  adjust: {
    as: "operator",
    path: ofUser("/adjustments"),
    body: () => ({ amount: "-1.00", note: "Personal" }),
    changes: () => ({ amount: "-1.00", note: "[hidden]" }),
    resource: owner
  },
  rebuildUsage: {
    as: "operator",
    path: () => "/usage/rebuild",
    body: () => ({ from: "1970-01-01", to: "1970-01-01" }),
    changes: () => ({ from: "1970-01-01", to: "1970-01-01" }),
    resource: () => null,
    hasNoUser: true
  },
  reconcileBill: {
    as: "operator",
    path: () => "/reconciliations",
    body: () => ({ vendor: "fal", bill: "id,model,date,amount\nsecret-id,flux,1970-01-01,1.00" }),
    changes: () => ({ vendor: "fal", bill: "[hidden]" }),
    resource: () => null,
    hasNoUser: true
  },
  signIn: {
    as: "page",
    path: () => "/session",
    body: ({ owner: { key } }) => ({ api_key: key }),
    resource: made
  },
  createPasskey: {
    as: "page",
    path: () => "/passkeys",
    body: ({ credential }) => ({ name: "Personal", credential }),
    changes: () => ({ name: "[hidden]", credential: "[hidden]" }),
    resource: made
  },
  deletePasskey: {
    as: "page",
    path: ({ passkey }) => `/passkeys/${passkey}`,
    resource: ({ passkey }) => passkey
  },
  signOut: { as: "page", path: () => "/session", resource: (world) => world.browser.json.id },
  changePassword: {
    as: "page",
    path: () => "/session/password",
    body: () => ({ password: "secret-password" }),
    changes: () => ({ password: "[hidden]" }),
    resource: (world) => world.browser.json.id
  },
  revokeSession: {
    as: "user",
    path: (world) => `/sessions/${world.browser.json.id}`,
    resource: (world) => world.browser.json.id
  },
  createSignInLink: {
    as: "operator",
    path: ({ owner: { id } }) => `/users/${id}/sign-in-links`,
    resource: ({ owner: { id } }) => id
  },
  reloadCatalog: {
    as: "operator",
    path: () => "/catalog/reload",
    resource: () => null,
    hasNoUser: true
  },
  drainAccount: {
    as: "operator",
    path: account("/drain"),
    resource: () => accountId,
    hasNoUser: true
  },
  resumeAccount: {
    as: "operator",
    path: account("/resume"),
    resource: () => accountId,
    hasNoUser: true
  },
  checkAccount: {
    as: "operator",
    path: account("/check"),
    resource: () => accountId,
    hasNoUser: true
  },
  createApiKey: {
    as: "user",
    path: () => "/api-keys",
    body: () => ({ name: "Personal", expires_at: future }),
    changes: () => ({ name: "[hidden]", expires_at: future }),
    resource: made
  },
  updateApiKey: {
    as: "user",
    path: (world) => `/api-keys/${world.otherKey}`,
    body: () => ({
      name: "Personal",
      spend_limit: "5.00",
      reset: "daily",
      allowed_models: ["openai/gpt-image-1"],
      concurrent_tasks: 2
    }),
    changes: () => ({
      name: "[hidden]",
      spend_limit: "5.00",
      reset: "daily",
      allowed_models: ["openai/gpt-image-1"],
      concurrent_tasks: 2
    }),
    resource: (world) => world.otherKey
  },
  rotateApiKey: {
    as: "user",
    path: (world) => `/api-keys/${world.otherKey}/rotate`,
    body: () => ({ grace_seconds: 60 }),
    changes: () => ({ grace_seconds: 60 }),
    resource: (world) => world.otherKey
  },
  revokeApiKey: {
    as: "user",
    path: (world) => `/api-keys/${world.otherKey}`,
    resource: (world) => world.otherKey
  },
  updateSettings: {
    as: "user",
    path: () => "/settings",
    body: () => ({ keep_calls: true }),
    changes: () => ({ keep_calls: true }),
    resource: () => null
  },
  updateWallet: {
    as: "user",
    path: () => "/wallet",
    body: () => ({ trigger_threshold: "12.00" }),
    changes: () => ({ trigger_threshold: "12.00" }),
    resource: () => null
  },
  createWebhookEndpoint: {
    as: "user",
    path: () => "/webhook-endpoints",
    body: () => ({ url: "https://hooks.example.com/secret-token", events: ["task.failed"] }),
    changes: () => ({ url: "[hidden]", events: ["task.failed"] }),
    resource: made
  },
  updateWebhookEndpoint: {
    as: "user",
    path: endpointPath(""),
    body: () => ({ description: "Personal", enabled: false }),
    changes: () => ({ description: "[hidden]", enabled: false })
  },
  deleteWebhookEndpoint: { as: "user", path: endpointPath("") },
  rotateWebhookEndpoint: { as: "user", path: endpointPath("/rotate") },
  rotateWebhookSecret: {
    as: "user",
    path: () => "/webhook-secret/rotate",
    resource: () => null
  },
  testWebhookEndpoint: { as: "user", path: endpointPath("/test") },
  recoverWebhookEndpoint: {
    as: "user",
    path: endpointPath("/recover"),
    body: () => ({ since: past }),
    changes: () => ({ since: past })
  },
  debugWebhookSignature: {
    as: "user",
    path: endpointPath("/debug-signature"),
    body: () => ({ headers: { a: "secret-header" }, body: "secret-body", secret: "whsec_secret" }),
    changes: () => ({ headers: "[hidden]", body: "[hidden]", secret: "[hidden]" })
  },
  redeliverWebhookDeliveries: {
    as: "user",
    path: () => "/webhook-deliveries/redeliver",
    body: (world) => ({ filter: { endpoint_id: world.endpoint, status: "failed" } }),
    changes: (world) => ({ filter: { endpoint_id: world.endpoint, status: "failed" } }),
    resource: () => null
  },
  redeliverWebhookDelivery: {
    as: "user",
    path: (world) => `/webhook-deliveries/${world.delivery}/redeliver`,
    resource: (world) => world.delivery
  }
}

/** Every operation of the management API that reads or writes, with its method. */
const operations = (kind: "GET" | "write" = "write") => {
  const found = new Map<string, string>()
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      if ((endpoint.method === "GET") === (kind === "GET"))
        found.set(endpoint.identifier, endpoint.method)
    }
  })
  return found
}

const send = (name: string, world: World) => {
  const write = writes[name]!
  const { browser, call } = world
  const ofPage = (method: string, path: string, body?: unknown) =>
    Effect.andThen(
      TestClock.adjust("10 millis"),
      browser.call(method, `${manage}${path}`, body, ownPage)
    )
  const callers = { operator, user: call, page: ofPage }
  return callers[write.as](operations().get(name)!, write.path(world), write.body?.(world))
}

const logOf = (query = "") =>
  Effect.map(operator("GET", `/audit-log?limit=100${query}`), ({ json }) => json.data)

/** Tables that change by themselves or contain nothing that was requested. */
const ambient = [
  "duties",
  "passkey_challenges",
  "processes",
  "request_buckets",
  "wallet_audits",
  "wallet_audit_rounds"
]

const state = Effect.map(contents, (tables) => {
  for (const name of ambient) tables.delete(name)
  for (const row of tables.get("api_keys") ?? []) delete row["last_used_at"]
  for (const row of tables.get("vendor_accounts") ?? []) delete row["configured_at"]
  return Object.fromEntries(tables)
})

layer(layerGateway({ env }), { timeout: "120 seconds" })("the audit log", (it) => {
  it.effect("every operation that writes has a request in this test", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(Object.keys(writes).sort(), [...operations().keys()].sort())
    })
  )

  it.effect("no operation changes anything without its entry", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      // One world is enough, because reads do not change it
      const world = yield* makeWorld
      yield* sql`ALTER TABLE audit_entries ADD CONSTRAINT refused CHECK (false) NOT VALID`
      const before = yield* state
      for (const name of Object.keys(writes)) {
        const answer = yield* send(name, world)
        assert.strictEqual(answer.status, 500, `${name} ${answer.text}`)
        assert.deepStrictEqual(yield* state, before, name)
      }
      yield* sql`ALTER TABLE audit_entries DROP CONSTRAINT refused`
    })
  )

  for (const [name, write] of Object.entries(writes)) {
    it.effect(`${name} leaves one entry with its actor, change and user`, () =>
      Effect.gen(function* () {
        const world = yield* makeWorld
        const before = yield* logOf()
        const answer = yield* send(name, world)
        assert.isBelow(answer.status, 300, answer.text)
        const [entry, ...rest] = yield* logOf()
        assert.deepStrictEqual(rest.slice(0, 3), before.slice(0, 3))
        const isOperator = write.as === "operator"
        const isPage = write.as === "page"
        const resource = write.resource ?? ((it: World) => it.endpoint)
        assert.deepInclude(entry, {
          type: name,
          user_id: write.hasNoUser ? null : name === "createUser" ? answer.json.id : world.owner.id,
          resource_id: resource(world, answer),
          changes: write.changes?.(world) ?? {},
          trace_id: answer.headers.get("traceparent")!.slice(3, 35)
        })
        const user = isPage ? "session" : "api_key"
        assert.strictEqual(entry.actor.type, isOperator ? "operator" : user)
        assert.strictEqual(entry.actor.user_id, isOperator ? null : world.owner.id)
        if (!isOperator) assert.match(entry.actor.id, isPage ? /^ses_/u : /^key_/u)
        assert.notMatch(JSON.stringify(entry), /personal|secret-|whsec_|sk-/iu)
      })
    )
  }

  it.effect("refused and replayed requests leave no entry", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const key = { "idempotency-key": "audit-1" }
      const topUp = `/users/${world.owner.id}/top-ups`
      const first = yield* operator("POST", topUp, { amount: "1.00" }, key)
      assert.strictEqual(first.status, 201)
      const before = yield* logOf()
      const replayed = yield* operator("POST", topUp, { amount: "1.00" }, key)
      assert.strictEqual(replayed.headers.get("idempotency-replayed"), "true")
      for (const [path, body, status] of [
        ["/api-keys", { name: "" }, 400],
        ["/users", { email: "x@example.com" }, 403],
        ["/webhook-endpoints/whe_none/rotate", undefined, 404]
      ] as const) {
        assert.strictEqual((yield* world.call("POST", path, body)).status, status)
      }
      assert.deepStrictEqual(yield* logOf(), before)
    })
  )

  it.effect("the operator's reads of a user are recorded; the users' own reads are not", () =>
    Effect.gen(function* () {
      const world = yield* makeWorld
      const before = yield* logOf()
      yield* world.call("GET", "/wallet")
      yield* operator("GET", "/users")
      assert.deepStrictEqual(yield* logOf(), before)
      yield* operator("GET", `/users/${world.owner.id}/wallet`)
      yield* operator("GET", `/users/${world.owner.id}/wallet/entries?format=csv`)
      const [second, first] = yield* logOf()
      assert.deepInclude(first, { type: "getUserWallet", user_id: world.owner.id, changes: {} })
      assert.deepInclude(second, { type: "listUserWalletEntries", user_id: world.owner.id })
    })
  )

  it.effect(
    "every read of a user's data is recorded, whether or not the request names the user; others are not",
    () =>
      Effect.gen(function* () {
        const http = yield* GatewayHttp
        const { call, delivery, endpoint, otherKey, owner } = yield* makeWorld
        const image = yield* callWith(owner.key)("POST", imagePath, { prompt: "A lighthouse" })
        const chat = { model: "gpt-4o", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] }
        yield* call("PATCH", "/settings", { keep_calls: true })
        yield* callWith(owner.key)("POST", "/v1/chat/completions", chat)
        const calls = yield* eventually(call("GET", "/calls"), ({ json }) => json.data.length > 0)
        const ofUser = {
          listApiKeys: "/api-keys?",
          getApiKey: `/api-keys/${otherKey}?`,
          listSessions: "/sessions?",
          listPasskeys: "/passkeys?",
          listAuditLog: "/audit-log?",
          listCalls: "/calls?",
          getCall: `/calls/${calls.json.data[0].id}?`,
          getCallContent: `/calls/${calls.json.data[0].id}/content?`,
          getSettings: "/settings?",
          streamEvents: "/events?",
          listTasks: "/tasks?",
          getTask: `/tasks/${image.json.task_info.id}?`,
          listTaskReceipts: `/tasks/${image.json.task_info.id}/receipts?`,
          listUsage: "/usage?from=1970-01-01&to=1970-01-02&",
          getWallet: "/wallet?",
          listWalletEntries: "/wallet/entries?",
          listWebhookDeliveries: "/webhook-deliveries?",
          getWebhookDelivery: `/webhook-deliveries/${delivery}?`,
          listWebhookEndpoints: "/webhook-endpoints?",
          getWebhookEndpoint: `/webhook-endpoints/${endpoint}?`,
          getWebhookEndpointActivity: `/webhook-endpoints/${endpoint}/activity?`,
          getWebhookSecret: "/webhook-secret?"
        }
        const named = {
          exportUser: `/users/${owner.id}/export`,
          getUser: `/users/${owner.id}`,
          getUserWallet: `/users/${owner.id}/wallet`,
          listUserWalletEntries: `/users/${owner.id}/wallet/entries`,
          ...Object.fromEntries(
            Object.entries(ofUser).map(([name, path]) => [name, `${path}user_id=${owner.id}`])
          )
        }
        const withoutUser = {
          getCatalog: "/catalog",
          listModels: "/models",
          listUsers: "/users",
          getService: "/service",
          getSession: undefined,
          getPasskeyCreation: undefined,
          getPasskeySignIn: "/session/passkey",
          getQueues: "/queues",
          listAccounts: "/accounts"
        }
        const trace = image.headers.get("traceparent")!.slice(3, 35)
        const overAllUsers = {
          listAllTasks: "/operator/tasks?limit=1",
          listAllCalls: "/operator/calls?limit=1",
          search: `/operator/search?q=${image.json.task_info.id}`
        }
        // A new route needs a request here
        const reads = [...operations("GET").keys()].sort()
        assert.deepStrictEqual(
          Object.keys({ ...named, ...overAllUsers, ...withoutUser }).sort(),
          reads
        )
        for (const [type, path] of Object.entries(overAllUsers)) {
          yield* TestClock.adjust("10 millis")
          assert.strictEqual((yield* operator("GET", path)).status, 200, path)
          // An object belongs to a user, and a list to many
          const user_id = type === "search" ? owner.id : null
          assert.deepInclude((yield* logOf())[0], { type, user_id, resource_id: null }, path)
        }
        for (const [type, path] of [
          ["listAllTasks", `/operator/tasks?user_id=${owner.id}`],
          ["listAllCalls", `/operator/calls?user_id=${owner.id}`],
          ["search", `/operator/search?q=${trace}`]
        ] as const) {
          yield* TestClock.adjust("10 millis")
          assert.strictEqual((yield* operator("GET", path)).status, 200, path)
          assert.deepInclude((yield* logOf())[0], { type, user_id: owner.id }, path)
        }
        for (const [type, path] of Object.entries(named)) {
          yield* TestClock.adjust("10 millis")
          const { body, status } = yield* http.fetch(`${manage}${path}`, {
            headers: { authorization: `Bearer ${adminToken}` }
          })
          // A stream does not end by itself
          yield* Effect.promise(() => body!.cancel())
          assert.strictEqual(status, 200, path)
          const [entry] = yield* logOf()
          assert.deepInclude(entry, { type, user_id: owner.id, changes: {} }, path)
          assert.deepInclude(entry.actor, { type: "operator", id: null, user_id: null })
        }
        const unnamed = yield* operator("GET", `/api-keys/${otherKey}`)
        assert.strictEqual(unnamed.status, 200)
        const before = yield* logOf()
        assert.deepInclude(before[0], {
          type: "getApiKey",
          user_id: owner.id,
          resource_id: otherKey
        })
        for (const path of Object.values(withoutUser)) {
          if (path !== undefined) yield* operator("GET", path)
        }
        yield* operator("GET", "/api-keys/key_unknown")
        yield* operator("GET", "/operator/search?q=key_unknown")
        yield* operator("GET", `/operator/search?q=${encodeURIComponent("@example.com")}`)
        assert.deepStrictEqual(yield* logOf(), before)
      })
  )

  it.effect("a dry run of a reload changes nothing and leaves no entry", () =>
    Effect.gen(function* () {
      const before = yield* logOf()
      const dry = yield* operator("POST", "/catalog/reload?dry_run=true")
      assert.strictEqual(dry.status, 200, dry.text)
      assert.deepStrictEqual(yield* logOf(), before)
      const real = yield* operator("POST", "/catalog/reload")
      assert.strictEqual(real.status, 200, real.text)
      assert.deepInclude((yield* logOf())[0], { type: "reloadCatalog" })
    })
  )

  it.effect(
    "a user sees their own log and the operator sees all, with filters, pages and CSV",
    () =>
      Effect.gen(function* () {
        const world = yield* makeWorld
        yield* makeWorld
        yield* operator("POST", `/users/${world.owner.id}/top-ups`, { amount: "1.00" })
        const own = yield* world.call("GET", "/audit-log")
        const types = own.json.data.map(({ type }: { type: string }) => type)
        assert.deepStrictEqual(types, [
          "topUp",
          "signIn",
          "createSignInLink",
          "createApiKey",
          "testWebhookEndpoint",
          "createWebhookEndpoint"
        ])
        const query = `&user_id=${world.owner.id}`
        const seen = yield* logOf(query)
        assert.deepStrictEqual(seen.slice(-own.json.data.length), own.json.data)
        const foreign = yield* world.call("GET", `/audit-log?user_id=${(yield* makeUser()).id}`)
        assert.deepStrictEqual([foreign.status, foreign.json.code], [403, 1004])

        assert.lengthOf(yield* logOf(`${query}&type=topUp`), 1)
        assert.lengthOf(yield* logOf(`&resource_id=${world.otherKey}`), 1)
        const [{ actor, created_at }] = yield* logOf(`${query}&type=createApiKey`)
        assert.lengthOf(yield* logOf(`&actor_id=${actor.id}`), 3)
        assert.lengthOf(yield* logOf(`${query}&until=${created_at}`), 2)

        // The operator's views are logged there too
        const all = (yield* world.call("GET", "/audit-log")).json.data
        assert.deepInclude(all[0], { type: "listAuditLog", user_id: world.owner.id })
        const first = yield* world.call("GET", "/audit-log?limit=5")
        const rest = yield* world.call("GET", `/audit-log?limit=5&cursor=${first.json.next_cursor}`)
        assert.deepStrictEqual([...first.json.data, ...rest.json.data], all)
        assert.isNull(rest.json.next_cursor)

        const csv = yield* world.call("GET", "/audit-log?format=csv&type=topUp")
        const lines = csv.text.split("\r\n")
        assert.match(csv.headers.get("content-disposition")!, /audit-log\.csv/u)
        assert.lengthOf(lines, 3)
        assert.match(lines[1]!, /^aud_[0-9a-f]{32},\d{4}-.*,topUp,operator,,,,.*1\.00/u)
      })
  )

  it.effect("no entry is changed or deleted, except the address of a deleted user", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const world = yield* makeWorld
      for (const statement of [
        "UPDATE audit_entries SET type = 'other'",
        "UPDATE audit_entries SET ip_address = '10.0.0.1'",
        "UPDATE audit_entries SET ip_address = null, actor_id = null",
        "DELETE FROM audit_entries",
        "TRUNCATE audit_entries"
      ]) {
        const failed = yield* Effect.flip(sql.unsafe(statement))
        assert.include(JSON.stringify(failed.reason.cause), "GW001", statement)
      }
      const before = yield* logOf()
      yield* sql`UPDATE audit_entries SET ip_address = null WHERE user_id = ${world.owner.id}`
      assert.lengthOf(yield* logOf(), Math.min(before.length, 100))
    })
  )
})
