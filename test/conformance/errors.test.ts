import { assert, describe, layer } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import { taskErrorHelp } from "../../src/domain/ErrorHelp.ts"
import { problemCodes } from "../../src/domain/Problem.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { VendorError, VendorErrorClass } from "../../src/vendors/VendorClient.ts"
import { taskErrorOf } from "../../src/services/VendorFailure.ts"
import { adminToken, callWith, GatewayHttp, layerGateway, makeUser } from "../support/gateway.ts"
import type { Answer } from "../support/gateway.ts"

const path = "/vendors/alibaba/v1/text-to-image-max/generation"
const body = { prompt: "[[sim:hang]]" }

/** Contract 4. 5002 and 5004 are the passthrough's; 5000 and 5003 need a broken store (problems.test.ts). */
describe("codes of contract 4", () => {
  const env = {
    RATE_LIMIT_PER_MINUTE: "30",
    CONCURRENT_TASKS_PER_KEY: "2",
    MAX_BODY_BYTES: "4096"
  }
  layer(layerGateway({ env }), { timeout: "60 seconds" })((it) => {
    it.effect("each is reached, with its status, as a whole problem", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const keys = yield* ApiKeys
        const { key: expired } = yield* keys.create({
          userId: user.id,
          name: "old",
          scopes: ["inference"],
          expiresAt: Option.some(yield* DateTime.now)
        })
        const poor = yield* makeUser({ credits: 0 })
        const manager = yield* makeUser({ scopes: ["manage"] })
        const busy = yield* makeUser()
        const eager = yield* makeUser()
        const http = yield* GatewayHttp
        const raw = (init: { type?: string; body: string }) =>
          Effect.gen(function* () {
            const response = yield* http.fetch(path, {
              method: "POST",
              headers: {
                authorization: `Bearer ${user.key}`,
                "content-type": init.type ?? "application/json"
              },
              body: init.body
            })
            const text = yield* Effect.promise(() => response.text())
            const { headers, status } = response
            return { status, headers, text, json: JSON.parse(text) } satisfies Answer
          })
        for (let i = 0; i < 2; i += 1) yield* busy.call("POST", path, body)
        for (let i = 0; i < 30; i += 1) yield* eager.call("GET", `${path}/x${i}`)
        const id = (yield* user.call("POST", path, body, { "idempotency-key": "k" })).json.task_info
          .id as string
        yield* user.call("DELETE", `${path}/${id}`)
        const endpoints = "/manage/v1/webhook-endpoints"
        const hook = (url: string) =>
          user.call("POST", endpoints, { url, events: ["task.created"] })
        const reached: Record<number, Answer> = {
          1001: yield* callWith(undefined)("GET", `${path}/${id}`),
          1002: yield* callWith("sk-nonsense")("GET", `${path}/${id}`),
          1003: yield* callWith(expired)("GET", `${path}/${id}`),
          1004: yield* manager.call("GET", `${path}/${id}`),
          1101: yield* poor.call("POST", path, body),
          1201: yield* eager.call("POST", path, body),
          1202: yield* busy.call("POST", path, body),
          2001: yield* user.call("POST", path, { prompt: 1, what: 2 }),
          2002: yield* raw({ body: "{" }),
          2003: yield* raw({ body: "{}", type: "text/plain" }),
          2004: yield* raw({ body: JSON.stringify({ prompt: "a".repeat(5000) }) }),
          2005: yield* user.call("GET", `${path}/00000000-0000-7000-8000-000000000000`),
          2006: yield* user.call("GET", `/vendors/nobody/v1/nothing/generation/${id}`),
          2007: yield* user.call("PUT", path, body),
          2008: yield* user.call("POST", path, { prompt: "b" }, { "idempotency-key": "k" }),
          2010: yield* user.call("DELETE", `${path}/${id}`),
          2011: yield* hook("http://hooks.example.com"),
          2012: yield* callWith(undefined)(
            "GET",
            `/artifacts/art_${"0".repeat(32)}?expires=1&signature=x`
          )
        }
        const page = yield* callWith(undefined)("GET", "/docs/errors")
        for (const [code, answer] of Object.entries(reached)) {
          const known = Object.entries(problemCodes).find(([it]) => it === code)?.[1]
          assert.strictEqual(answer.json?.code, Number(code), answer.text)
          assert.strictEqual(answer.status, known?.status, code)
          assert.strictEqual(answer.headers.get("content-type"), "application/problem+json")
          assert.match(
            answer.headers.get("traceparent") ?? "",
            /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/u
          )
          assert.deepInclude(answer.json, { title: known?.title, status: known?.status })
          assert.isString(answer.json.detail)
          assert.match(answer.json.instance, /^\/[^?]*$/u)
          // The type URI resolves: to a page that has the code as an anchor
          const [place, anchor] = answer.json.type.split("#")
          assert.strictEqual(place, "/docs/errors")
          assert.include(page.text, `id="${anchor}"`)
          if (known?.status === 401)
            assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/u)
          if (known?.status === 429) assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/u)
        }
        assert.strictEqual(reached[2007]?.headers.get("allow"), "POST")
        assert.strictEqual(reached[2001]?.json.errors.length, 2)
      })
    )

    it.effect("/docs/errors lists every code of problems and of tasks, with what to do", () =>
      Effect.gen(function* () {
        const page = yield* callWith(adminToken)("GET", "/docs/errors")
        assert.strictEqual(page.status, 200)
        assert.match(page.headers.get("content-type") ?? "", /^text\/html/u)
        const codes = [...Object.keys(problemCodes), ...Object.keys(taskErrorHelp)]
        for (const code of codes) assert.include(page.text, `<tr id="${code}"><td>${code}</td>`)
        assert.deepStrictEqual(
          [400, 3001, 3002, 3003, 3004, 3005, 4002, 4004, 4005, 4008].map(String),
          Object.keys(taskErrorHelp)
        )
      })
    )

    it.effect("whatever a vendor fails with, its task error is listed", () =>
      Effect.sync(() => {
        for (const failure of VendorErrorClass.literals) {
          const { code } = taskErrorOf(new VendorError({ class: failure, message: "m" }))
          assert.property(taskErrorHelp, String(code))
        }
      })
    )
  })
})
