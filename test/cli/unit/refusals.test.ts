import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { tmpdir } from "node:os"
import { runCommand } from "../../support/commandLine.ts"
import { localServer } from "../../support/localServer.ts"

/** What a command prints when the gateway refuses. docs/cli.md#exit-codes */

type Answer = (path: string) => readonly [status: number, body: object]

const answering = (answer: Answer) =>
  Effect.map(
    localServer(({ url = "" }, response) => {
      const [status, body] = answer(url)
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(body))
    }),
    (url) => ({ env: { GATEWAY_URL: url, GATEWAY_API_KEY: "sk-x", ADMIN_TOKEN: "a-token" } })
  )

const refusing = (status: number, problem: object) => answering(() => [status, problem])

const topUp = ["top-up", "01a20678-2afc-74d6-a810-f6e9f061f816", "100"]

describe("a command that fails", () => {
  it.live("prints no control characters from names that others chose", () =>
    Effect.gen(function* () {
      const { env } = yield* refusing(409, {
        title: "Conflict",
        detail: "The name \u001b]0;owned\u0007\u001b[2J\rError: all is well is taken",
        code: 2010,
        errors: [{ pointer: "#/name", detail: "\u001b[8mhidden" }]
      })
      const { code, error } = yield* runCommand(["users", "create", "a@example.com"], env)
      assert.strictEqual(code, 1)
      assert.deepStrictEqual(error.split("\n").slice(0, 2), [
        "Error: Conflict: The name  ]0;owned  [2J Error: all is well is taken (code 2010, HTTP 409)",
        "  #/name:  [8mhidden"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("distinguishes a proxy without its service from a server that is not a gateway", () =>
    Effect.gen(function* () {
      for (const [status, reason] of [
        [502, "cannot be reached: a proxy in front of it responded with 502"],
        [504, "cannot be reached: a proxy in front of it responded with 504"],
        [500, "is not a gateway of this version: it responded with 500"]
      ] as const) {
        const { env } = yield* refusing(status, {})
        const { code, error } = yield* runCommand(["tasks", "list"], env)
        assert.strictEqual(code, 1)
        assert.include(error, reason)
      }
    }).pipe(Effect.scoped)
  )

  it.live("names the operation id of a top-up only if it may have been booked", () =>
    Effect.gen(function* () {
      for (const [status, isOpen] of [
        [500, true],
        [503, true],
        [402, false]
      ] as const) {
        const code = status === 402 ? 2001 : 5000
        const { env } = yield* refusing(status, { title: "Away", detail: "Away", code })
        const { error } = yield* runCommand(topUp, env)
        assert.strictEqual(/--operation-id cli-[\da-f-]{36} to book it/u.test(error), isOpen, error)
      }
    }).pipe(Effect.scoped)
  )

  it.live("refuses a text that begins with a hyphen instead of reading it as flags", () =>
    Effect.gen(function* () {
      for (const args of [
        ["run", "text-to-image-max", "-5 degrees, hoar frost"],
        ["keys", "create", "--name", "-very long"],
        ["keys", "rotate", "key_1", "--grace", "-1 hour", "--json"]
      ]) {
        const { code, error, out } = yield* runCommand(args)
        assert.deepStrictEqual([code, out], [2, ""], error)
        assert.match(
          error,
          /begins with a hyphen, like a flag\nRemedy: Write such a text after --/u
        )
      }
      const { env } = yield* refusing(409, { title: "Conflict", detail: "Taken", code: 2010 })
      const named = yield* runCommand(["keys", "create", "--name=-very long"], env)
      assert.include(named.error, "Taken")
      assert.strictEqual((yield* runCommand(["keys", "create", "-h"])).code, 0)
    }).pipe(Effect.scoped)
  )

  it.live("refuses an operation id that a header cannot contain", () =>
    Effect.gen(function* () {
      for (const id of ["a\nb", "übung", "x".repeat(256)]) {
        const { code, error } = yield* runCommand([...topUp, "--operation-id", id])
        assert.strictEqual(code, 2)
        assert.include(error, "--operation-id")
        const ran = yield* runCommand(["run", "text-to-image-max", "--idempotency-key", id])
        assert.strictEqual(ran.code, 2)
        assert.include(ran.error, "--idempotency-key")
      }
    })
  )

  it.live("says how to get the result of a task that has ended", () =>
    Effect.gen(function* () {
      const id = "01a20678-2e2e-7311-9155-06f4bb3f7f57"
      const at = "2026-01-01T00:00:00.000Z"
      const listed = {
        id,
        vendor: "alibaba",
        model: "text-to-image-max",
        action: "generation",
        status: "completed",
        error: null,
        sandbox: false,
        receipt: { held: "1.00", captured: "1.00", released: "0.00", currency: "credits" },
        catalog: null,
        prompt: null,
        key_name: null,
        preview: null,
        trace_id: null,
        created_at: at,
        started_at: at,
        ended_at: at,
        body: {},
        inputs: [],
        result_kind: "images",
        result: null,
        moves: [],
        attempts: [],
        entries: [],
        deliveries: []
      }
      const { env } = yield* answering((path) =>
        path.startsWith("/manage/")
          ? [200, listed]
          : [
              200,
              {
                task_info: { id, created_at: at, updated_at: at, status: "completed" },
                images: ["http://127.0.0.1:9/picture.png"]
              }
            ]
      )
      const wait = ["tasks", "wait", id, "--out", tmpdir(), "--json"]
      const { code, error } = yield* runCommand(wait, env)
      assert.strictEqual(code, 1)
      assert.include(error, "The result cannot be downloaded")
      assert.include(error, `gateway tasks wait ${id}`)
    }).pipe(Effect.scoped)
  )

  it.live("resends the other deliveries of an event if one is refused", () =>
    Effect.gen(function* () {
      const event_id = "evt_01a206782e2f79ceaf24c63ee4bdeff4"
      const deliveryOf = (id: string) => {
        const at = "2026-01-01T00:00:00.000Z"
        return {
          id,
          endpoint_id: "whe_1",
          webhook_url: null,
          event_id,
          type: "task.created",
          task_id: null,
          status: "pending",
          attempt_count: 0,
          next_attempt_at: at,
          created_at: at,
          updated_at: at
        }
      }
      const { env } = yield* answering((path) => {
        if (!path.includes("/redeliver")) {
          return [
            200,
            { data: [deliveryOf("whd_gone"), deliveryOf("whd_there")], next_cursor: null }
          ]
        }
        return path.includes("whd_gone")
          ? [409, { title: "Conflict", detail: "The endpoint was deleted", code: 2010 }]
          : [200, deliveryOf("whd_there")]
      })
      const { code, error } = yield* runCommand(["redeliver", event_id], env)
      assert.strictEqual(code, 1)
      assert.match(
        error,
        /^Error: Sending whd_there again\nwhd_gone: Conflict: The endpoint was deleted \(code 2010/u
      )
    }).pipe(Effect.scoped)
  )
})
