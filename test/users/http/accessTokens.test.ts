import { assert, describe, layer } from "@effect/vitest"
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { CurrentOpenResponses } from "../../../src/process/OpenResponses.ts"
import {
  advance,
  baseUrl,
  callWith,
  eventually,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { failTool, rpc, useTool } from "../../support/mcp.ts"
import { beginPost } from "../../support/slowBody.ts"
import { issueToken, makeKey, TokenIssuer } from "../../support/tokenIssuer.ts"

/** OAuth access tokens at `/mcp`. docs/reference/mcp.md#oauth */

const gateway = (env: Readonly<Record<string, string>> = {}) =>
  Layer.unwrap(
    Effect.map(Layer.build(TokenIssuer.layer), (built) => {
      const { issuer } = Context.get(built, TokenIssuer)
      return layerGateway({
        env: {
          OIDC_ISSUER: issuer,
          OIDC_CLIENT_ID: "gateway",
          OIDC_OPERATORS: "chief@example.com",
          ...env
        }
      }).pipe(Layer.merge(Layer.succeedContext(built)))
    })
  )

type Subject = Effect.Success<ReturnType<typeof makeSubject>>
type World =
  | Effect.Services<ReturnType<typeof advance>>
  | Effect.Services<ReturnType<typeof operator>>

let subjects = 0

/** A user who has signed in with the provider before, as the next token says. */
const makeSubject = Effect.fnUntraced(function* (options?: Parameters<typeof makeUser>[0]) {
  const user = yield* makeUser(options)
  const { issuer } = yield* TokenIssuer
  const sql = yield* SqlClient
  subjects += 1
  const sub = `subject-${subjects}`
  yield* sql`UPDATE users SET oidc_subject = ${`${issuer} ${sub}`} WHERE id = ${user.id}`
  const tokenWith = (claims: Record<string, unknown> = {}) =>
    issueToken({ claims: { sub, ...claims } })
  return { ...user, sub, tokenWith }
})

const secondsNow = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1000))

const callerOf = (token: string) => ({ call: callWith(token) })
const ping = (token: string) => rpc(callerOf(token), "ping")
const model = "alibaba/text-to-image-max"
const create = { model, input: { prompt: "A harbour" } }

const metadataUrl = `${baseUrl}/.well-known/oauth-protected-resource/mcp`
const invalidToken = `Bearer error="invalid_token", resource_metadata="${metadataUrl}", scope="inference"`

const assertRefused = (
  { headers, json, text }: Effect.Success<ReturnType<typeof ping>>,
  code: number,
  challenge = invalidToken
) => {
  assert.strictEqual(json?.code, code, text)
  assert.strictEqual(headers.get("www-authenticate"), challenge)
}

describe("access tokens", () => {
  layer(gateway(), { timeout: "60 seconds", excludeTestServices: false })((it) => {
    it.effect("the metadata and every 401 say where a client gets a token", () =>
      Effect.gen(function* () {
        const { issuer } = yield* TokenIssuer
        const nobody = callWith(undefined)
        for (const path of ["", "/mcp"]) {
          const at = `/.well-known/oauth-protected-resource${path}`
          const found = yield* nobody("GET", at)
          assert.deepStrictEqual(found.json, {
            resource: `${baseUrl}/mcp`,
            resource_name: "Service",
            authorization_servers: [issuer],
            scopes_supported: ["inference", "manage"],
            bearer_methods_supported: ["header"]
          })
          assert.strictEqual(found.headers.get("cache-control"), "public, max-age=3600")
        }
        const missing = yield* nobody("POST", "/mcp", {})
        assertRefused(missing, 1001, `Bearer resource_metadata="${metadataUrl}", scope="inference"`)
        assertRefused(yield* ping("sk-unknown"), 1002)
        // Valid only for this resource
        const other = yield* nobody("GET", "/manage/v1/wallet")
        assert.strictEqual(other.headers.get("www-authenticate"), "Bearer")
      })
    )

    it.effect("a token buys with its user's console key, wallet and limits", () =>
      Effect.gen(function* () {
        const user = yield* makeSubject()
        const caller = callerOf(yield* user.tokenWith({ scope: "inference manage openid" }))
        const listed = yield* useTool(caller, "list_models", { model: "text-to-image-max" })
        assert.strictEqual(listed.structuredContent.models[0].model, model)
        const bought = yield* useTool(caller, "create_task", create)
        const { budget_remaining, cost, task_id } = bought.structuredContent
        assert.strictEqual(cost, "7.50")
        assert.strictEqual(budget_remaining, "992.50")
        // Another token of the same user repeats the purchase
        const next = callerOf(yield* user.tokenWith({ client_id: "cursor" }))
        const again = yield* useTool(next, "create_task", create)
        assert.deepInclude(again.structuredContent, { task_id, replayed: true })
        yield* advance("5 seconds")
        const ended = yield* eventually(
          useTool(caller, "get_task", { task_id }),
          (it) => it.structuredContent.status === "completed"
        )
        assert.isNull(ended.structuredContent.error ?? null)
        const wallet = yield* useTool(caller, "wallet")
        assert.strictEqual(wallet.structuredContent.settled_balance, "992.50")
        const keys = (yield* user.call("GET", "/manage/v1/api-keys")).json.data
        const key = keys.find(({ name }: { name: string }) => name === "Console")
        assert.strictEqual(key.spent, "7.50")
        const usage = yield* user.call("GET", `/manage/v1/usage?group_by=key`)
        assert.include(JSON.stringify(usage.json), key.id)
        // The limits of the key apply to its tokens
        yield* user.call("PATCH", `/manage/v1/api-keys/${key.id}`, {
          allowed_models: ["image-edit"]
        })
        assert.strictEqual((yield* failTool(caller, "create_task", create)).code, 1004)
        yield* user.call("PATCH", `/manage/v1/api-keys/${key.id}`, {
          allowed_models: null,
          rate_limit_per_minute: 1
        })
        yield* useTool(caller, "quote", create)
        assert.strictEqual((yield* failTool(caller, "quote", create)).code, 1201)
        assert.strictEqual((yield* failTool(next, "quote", create)).code, 1201)
      })
    )

    it.effect(
      "a verified address in a token binds its subject once, and never an operator's address",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser()
          const email = "binds@example.com"
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { email })
          const claims = { sub: "binds", email }
          assert.strictEqual((yield* ping(yield* issueToken({ claims }))).json.code, 1004)
          const verified = yield* issueToken({ claims: { ...claims, email_verified: true } })
          assert.strictEqual((yield* ping(verified)).status, 200)
          // From now on identified by subject
          assert.strictEqual(
            (yield* ping(yield* issueToken({ claims: { sub: "binds" } }))).status,
            200
          )
          const thief = { sub: "thief", email, email_verified: true }
          const refused = yield* ping(yield* issueToken({ claims: thief }))
          assert.deepInclude(refused.json, { code: 1004, status: 403 })
          assert.isNull(refused.headers.get("www-authenticate"))
          yield* operator("PATCH", `/manage/v1/users/${user.id}`, { email: "chief@example.com" })
          const chief = { sub: "chief", email: "Chief@example.com", email_verified: true }
          assert.strictEqual((yield* ping(yield* issueToken({ claims: chief }))).json.code, 1004)
        })
    )

    it.effect("a token without a scope is refused with all scopes that the request needs", () =>
      Effect.gen(function* () {
        const user = yield* makeSubject()
        const caller = callerOf(yield* user.tokenWith())
        // All tools, because the client can ask for the scopes
        const listed = yield* rpc(caller, "tools/list")
        assert.lengthOf(listed.json.result.tools, 7)
        const insufficient = (scope: string) =>
          `Bearer error="insufficient_scope", resource_metadata="${metadataUrl}", scope="${scope}"`
        const wallet = yield* rpc(caller, "tools/call", { name: "wallet", arguments: {} })
        assert.strictEqual(wallet.status, 403)
        assertRefused(wallet, 1004, insufficient("inference manage"))
        const none = callerOf(yield* user.tokenWith({ scope: undefined }))
        assert.strictEqual((yield* rpc(none, "ping")).status, 200)
        const bought = yield* rpc(none, "tools/call", { name: "create_task", arguments: create })
        assertRefused(bought, 1004, insufficient("inference"))
        const call = (id: number, name: string) => ({
          jsonrpc: "2.0",
          id,
          method: "tools/call",
          params: { name, arguments: {} }
        })
        const both = yield* none.call("POST", "/mcp", [call(1, "wallet"), call(2, "quote")], {
          "mcp-protocol-version": "2025-03-26"
        })
        assertRefused(both, 1004, insufficient("manage inference"))
        // For a key the result says so
        const key = yield* makeUser({ scopes: ["inference"] })
        assert.strictEqual((yield* failTool(key, "wallet")).code, 1004)
      })
    )

    it.effect("are refused unless their issuer has issued them for this resource", () =>
      Effect.gen(function* () {
        const user = yield* makeSubject()
        assert.strictEqual((yield* ping(yield* user.tokenWith())).status, 200)
        const { sub } = user
        const own = makeKey("first")
        const bad: Record<string, Parameters<typeof issueToken>[0]> = {
          "another audience": { claims: { sub, aud: "https://other.example.com/mcp" } },
          "the gateway, not /mcp": { claims: { sub, aud: baseUrl } },
          "no audience": { claims: { sub, aud: undefined } },
          "another issuer": { claims: { sub, iss: "https://evil.example.com" } },
          "an ID token": { claims: { sub }, header: { typ: "JWT" } },
          "no type": { claims: { sub }, header: { typ: undefined } },
          "no signature": { claims: { sub }, header: { alg: "none" } },
          "the public key as a secret": { claims: { sub }, header: { alg: "HS256" } },
          "another key under the same id": { claims: { sub }, by: own },
          "a critical extension": { claims: { sub }, header: { crit: ["b64"], b64: false } },
          "valid later": { claims: { sub, nbf: 4_000_000_000 } },
          "no id": { claims: { sub, jti: undefined } },
          "no client": { claims: { sub, client_id: undefined } },
          "no expiry": { claims: { sub, exp: undefined } },
          "an expiry that is no number": { claims: { sub, exp: "never" } },
          "a long subject": { claims: { sub: "s".repeat(256) } },
          "a huge token": { claims: { sub, filler: "x".repeat(9000) } },
          "bound to a key of the client": { claims: { sub, cnf: { jkt: "a" } } }
        }
        for (const [name, issued] of Object.entries(bad)) {
          const refused = yield* ping(yield* issueToken(issued))
          assert.strictEqual(refused.json?.code, 1002, `${name}: ${refused.text}`)
          assertRefused(refused, 1002)
        }
        const token = yield* user.tokenWith()
        const [head, , signature] = token.split(".")
        const others = Buffer.from('{"sub":"operator"}').toString("base64url")
        for (const changed of [
          `${head}.${others}.${signature}`,
          token.slice(0, -4),
          `${token}.`,
          "a.b.c",
          "..",
          `${Buffer.from("[]").toString("base64url")}.${others}.`,
          `${Buffer.from('{"kid":{}}').toString("base64url")}.${others}.`
        ]) {
          assertRefused(yield* ping(changed), 1002)
        }
        const now = yield* secondsNow
        assertRefused(yield* ping(yield* user.tokenWith({ exp: now - 31 })), 1003)
        // Clocks may differ
        assert.strictEqual((yield* ping(yield* user.tokenWith({ exp: now - 29 }))).status, 200)
        // Valid only here
        for (const path of ["/manage/v1/wallet", "/v1/models"]) {
          assert.strictEqual((yield* callWith(token)("GET", path)).json.code ?? 1002, 1002)
          assert.strictEqual((yield* callWith(token)("GET", path)).status, 401)
        }
        const task = yield* callWith(token)(
          "POST",
          "/vendors/alibaba/v1/text-to-image-max/generation",
          create.input
        )
        assert.strictEqual(task.status, 401)
      })
    )

    const endings: Record<string, (user: Subject) => Effect.Effect<unknown, unknown, World>> = {
      "the user is disabled": ({ id }) =>
        operator("PATCH", `/manage/v1/users/${id}`, { disabled: true }),
      "the token expires": () => advance("10 seconds"),
      "the console key is revoked": ({ call }) =>
        Effect.gen(function* () {
          const keys = (yield* call("GET", "/manage/v1/api-keys")).json.data
          const key = keys.find(({ name }: { name: string }) => name === "Console")
          yield* call("DELETE", `/manage/v1/api-keys/${key.id}`)
        }),
      "the user is deleted": ({ id }) => operator("DELETE", `/manage/v1/users/${id}`)
    }

    it.effect("a token that ends while a body arrives does nothing with the body", () =>
      Effect.gen(function* () {
        for (const [name, end] of Object.entries(endings)) {
          const user = yield* makeSubject()
          const exp = (yield* secondsNow) - 22
          const scope = "inference manage"
          const token = yield* user.tokenWith(
            name === "the token expires" ? { exp, scope } : { scope }
          )
          const headers = { authorization: `Bearer ${token}` }
          yield* useTool(callerOf(token), "quote", create)
          const tools = { create_task: create, wallet: {}, list_models: {} }
          const late = yield* Effect.forEach(Object.entries(tools), ([tool, args]) =>
            beginPost("/mcp", headers, {
              jsonrpc: "2.0",
              id: 1,
              method: "tools/call",
              params: { name: tool, arguments: args }
            })
          )
          yield* advance("2 seconds")
          yield* end(user)
          const isDeleted = name === "the user is deleted"
          for (const { finish } of late) {
            const { json, text } = yield* finish
            assert.strictEqual(json.code, isDeleted ? 1004 : 1003, `${name}: ${text}`)
          }
          const sql = yield* SqlClient
          assert.isEmpty(yield* sql`SELECT id FROM tasks WHERE user_id = ${user.id}`)
        }
      })
    )

    it.effect("a disabled user, an expired token and a revoked key end waits within a second", () =>
      Effect.gen(function* () {
        const slow = { model, input: { prompt: "[[sim:slow=60s]]" } }
        for (const [name, end] of Object.entries(endings)) {
          const user = yield* makeSubject()
          const exp = (yield* secondsNow) - 22
          const token = yield* user.tokenWith(name === "the token expires" ? { exp } : {})
          const caller = callerOf(token)
          const { task_id } = (yield* useTool(caller, "create_task", slow)).structuredContent
          const open = Effect.map(CurrentOpenResponses, ({ count }) => count)
          const before = yield* open
          const waiting = yield* Effect.forkChild(
            failTool(caller, "get_task", { task_id, wait_seconds: 45 })
          )
          yield* eventually(open, (count) => count > before)
          yield* advance("2 seconds")
          yield* end(user)
          yield* advance("2 seconds")
          const isDeleted = name === "the user is deleted"
          assert.strictEqual((yield* Fiber.join(waiting)).code, isDeleted ? 1004 : 1003, name)
          assert.strictEqual((yield* ping(token)).json.code, isDeleted ? 1004 : 1003, name)
        }
      })
    )

    it.effect("revoking the console key ends earlier tokens, but no later one", () =>
      Effect.gen(function* () {
        const user = yield* makeSubject()
        const before = yield* user.tokenWith()
        assert.strictEqual((yield* ping(before)).status, 200)
        const keys = (yield* user.call("GET", "/manage/v1/api-keys")).json.data
        const key = keys.find(({ name }: { name: string }) => name === "Console")
        yield* user.call("DELETE", `/manage/v1/api-keys/${key.id}`)
        yield* TestClock.adjust("1 second")
        assertRefused(yield* ping(before), 1003)
        const after = yield* user.tokenWith()
        yield* useTool(callerOf(after), "quote", create)
        assertRefused(yield* ping(before), 1003)
      })
    )

    it.effect(
      "the first use of a token leaves an entry that names its subject, until the user is erased",
      () =>
        Effect.gen(function* () {
          const user = yield* makeSubject()
          const token = yield* user.tokenWith({ jti: "audited", scope: "inference email" })
          yield* ping(token)
          yield* ping(token)
          const at = `/manage/v1/audit-log?user_id=${user.id}&type=useAccessToken`
          const { data } = (yield* operator("GET", at)).json
          assert.lengthOf(data, 1)
          const [{ actor, changes, resource_id, user_id }] = data
          assert.deepInclude(actor, { type: "access_token", id: user.sub, user_id: user.id })
          assert.deepStrictEqual(changes, { client_id: "claude", scopes: ["inference"] })
          assert.deepStrictEqual([resource_id, user_id], ["audited", user.id])
          const seen = yield* user.call("GET", "/manage/v1/audit-log?type=useAccessToken")
          assert.lengthOf(seen.json.data, 1)
          const sql = yield* SqlClient
          const [secrets] =
            yield* sql`SELECT count(*)::int AS n FROM audit_entries e WHERE e::text LIKE ${`%${token.slice(-20)}%`}`
          assert.deepStrictEqual(secrets, { n: 0 })
          yield* operator("DELETE", `/manage/v1/users/${user.id}`)
          yield* eventually(
            Effect.andThen(advance("1 minute", "10 seconds"), operator("GET", at)),
            ({ json }) => json.data[0].actor.id === null
          )
        })
    )
  })

  layer(gateway(), { timeout: "60 seconds", excludeTestServices: false })(
    "keys of the issuer",
    (it) => {
      it.effect("a new key is found; invented key ids cause one read in ten seconds", () =>
        Effect.gen(function* () {
          const { state } = yield* TokenIssuer
          const user = yield* makeSubject()
          const old = yield* user.tokenWith()
          const together = yield* Effect.all(
            Array.from({ length: 20 }, () => ping(old)),
            {
              concurrency: "unbounded"
            }
          )
          for (const { status } of together) assert.strictEqual(status, 200)
          assert.strictEqual(state.reads, 1)
          const flood = Effect.forEach(
            Array.from({ length: 50 }, (_, n) => n),
            (n) =>
              Effect.gen(function* () {
                const header = { kid: `made-up-${n}` }
                const token = yield* issueToken({ claims: { sub: user.sub }, header })
                assertRefused(yield* ping(token), 1002)
              }),
            { concurrency: 10 }
          )
          yield* flood
          assert.strictEqual(state.reads, 1)
          yield* TestClock.adjust("10 seconds")
          yield* flood
          assert.strictEqual(state.reads, 2)
          // The issuer rotates its keys and changes the algorithm
          yield* TestClock.adjust("10 seconds")
          state.keys = [makeKey("second", "ES256"), ...state.keys]
          assert.strictEqual((yield* ping(yield* user.tokenWith())).status, 200)
          assert.strictEqual((yield* ping(old)).status, 200)
          assert.strictEqual(state.reads, 3)
          // A withdrawn key is not used for more than five minutes
          const kept = yield* issueToken({
            claims: { sub: user.sub, exp: (yield* secondsNow) + 3600 },
            by: state.keys[1]!
          })
          state.keys = state.keys.slice(0, 1)
          yield* TestClock.adjust("301 seconds")
          yield* eventually(ping(kept), ({ json }) => json.code === 1002)
          assert.strictEqual(state.reads, 4)
        })
      )
    }
  )

  layer(gateway({ OIDC_ISSUER: "", OIDC_CLIENT_ID: "", OIDC_OPERATORS: "" }), {
    timeout: "60 seconds",
    excludeTestServices: false
  })("without OIDC_ISSUER", (it) => {
    it.effect("there is no metadata, and no token is accepted", () =>
      Effect.gen(function* () {
        const nobody = callWith(undefined)
        for (const path of ["", "/mcp"]) {
          const found = yield* nobody("GET", `/.well-known/oauth-protected-resource${path}`)
          assert.deepInclude(found.json, { status: 404, code: 2006 })
        }
        assertRefused(yield* ping(yield* issueToken()), 1002, "Bearer")
        assertRefused(yield* nobody("POST", "/mcp", {}), 1001, "Bearer")
      })
    )
  })
})

layer(gateway({ OIDC_TOKEN_SCOPES: "inference" }), {
  timeout: "60 seconds",
  excludeTestServices: false
})("access tokens of a provider that decides about scopes itself", (it) => {
  it.effect("do not make clients ask for scopes", () =>
    Effect.gen(function* () {
      const nobody = callWith(undefined)
      const { json } = yield* nobody("GET", "/.well-known/oauth-protected-resource/mcp")
      assert.notProperty(json, "scopes_supported")
      const missing = yield* nobody("POST", "/mcp", {})
      assertRefused(missing, 1001, `Bearer resource_metadata="${metadataUrl}"`)
      const invalid = yield* ping("a.b.c")
      assertRefused(
        invalid,
        1002,
        `Bearer error="invalid_token", resource_metadata="${metadataUrl}"`
      )
    })
  )

  it.effect("a token without a known scope has the scopes of OIDC_TOKEN_SCOPES", () =>
    Effect.gen(function* () {
      for (const scope of [undefined, "", "openid mcp:use", "manage"]) {
        const user = yield* makeSubject()
        const caller = callerOf(yield* user.tokenWith({ scope }))
        const bought = yield* useTool(caller, "create_task", create)
        assert.isString(bought.structuredContent.task_id)
        const wallet = yield* rpc(caller, "tools/call", { name: "wallet", arguments: {} })
        if (scope === "manage") {
          assert.strictEqual(wallet.status, 200)
          continue
        }
        assert.strictEqual(wallet.status, 403)
        assertRefused(
          wallet,
          1004,
          `Bearer error="insufficient_scope", resource_metadata="${metadataUrl}", scope="manage"`
        )
        assert.include(wallet.json.detail, "OIDC_TOKEN_SCOPES")
      }
    })
  )
})
