import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe } from "vitest"
import { table } from "../../../src/cli/terminal/Table.ts"
import { runCommand, withEnvironment } from "../../support/commandLine.ts"
import { localServer } from "../../support/localServer.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/cli.md#the-service, docs/cli.md#doctor */

const folder = Effect.sync(() => temporaryFolder("offline"))

/** A vendor that accepts one key. */
const vendor = localServer((request, response) => {
  const isKnown = request.headers.authorization === "Bearer sk-good"
  response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" })
  response.end(JSON.stringify(isKnown ? { data: [] } : { error: { code: "invalid_api_key" } }))
})

/** Nothing listens at this address. */
const away = { GATEWAY_URL: "http://127.0.0.1:9" }

const diagnosis = Effect.map(runCommand(["doctor", "--json"], away), ({ code, error, out }) => {
  const document = JSON.parse(out)
  const of = (status: string): ReadonlyArray<{ check: string; detail: string; remedy: string }> =>
    document.findings.filter((it: { status: string }) => it.status === status)
  return { code, error, healthy: document.healthy, of, out }
})

describe("commands that need no service", () => {
  it.effect("catalog check names every fault of a file", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "catalog.json")
      writeFileSync(file, JSON.stringify({ remove: ["perpetuum-mobile"], chnage: {}, add: [{}] }))
      const { code, error, out } = yield* runCommand(["catalog", "check", file, "--json"])
      assert.strictEqual(code, 1)
      const pointers = JSON.parse(out).error.problem.errors.map(
        (it: { pointer: string }) => it.pointer
      )
      for (const pointer of ["#/chnage", "#/remove/0", "#/add/0/label"]) {
        assert.include(pointers, pointer)
        assert.include(error, `${pointer}: `)
      }
      writeFileSync(file, "{")
      assert.include((yield* runCommand(["catalog", "check", file])).error, "valid JSON")
    }).pipe(Effect.scoped)
  )

  it.live("doctor says what is wrong, and what to do", () =>
    Effect.gen(function* () {
      const own = { DATA_DIR: join(yield* folder, "data"), BASE_URL: "http://localhost:8080" }
      const url = yield* vendor
      yield* withEnvironment(own)
      const fresh = yield* diagnosis
      assert.deepStrictEqual([fresh.code, fresh.healthy], [0, true], fresh.out)
      assert.include(fresh.out, "no store yet")
      assert.include(fresh.out, "the sandbox serves all models")
      const doctor = yield* Effect.scoped(
        Effect.andThen(
          withEnvironment({
            OPENAI_API_KEY: "sk-good,sk-bad-and-secret",
            OPENAI_BASE_URL: url,
            EGRESS_ALLOW: "127.0.0.1"
          }),
          diagnosis
        )
      )
      assert.deepStrictEqual([doctor.code, doctor.healthy], [1, false])
      const [refused] = doctor.of("broken")
      assert.strictEqual(refused?.check, "vendors", doctor.out)
      assert.include(refused?.remedy, "openai")
      assert.isTrue(doctor.of("ok").some(({ detail }) => detail.includes("accepts its key")))
      assert.isTrue(doctor.of("warning").some(({ check }) => check === "egress"))
      assert.notInclude(doctor.out, "sk-bad-and-secret")
      const media = join(yield* folder, "media")
      const elsewhere = yield* Effect.scoped(
        Effect.andThen(withEnvironment({ ARTIFACT_STORE: media }), diagnosis)
      )
      assert.include(elsewhere.out, `${media} is writable`)
      writeFileSync(media, "")
      for (const [env, check] of [
        [{ PORT: "none" }, "configuration"],
        [{ ARTIFACT_STORE: join(media, "here") }, "media"],
        [{ DATA_DIR: media }, "data folder"],
        [{ CATALOG_FILE: "/nowhere.json" }, "models"],
        [
          {
            DATABASE_URL: "postgres://gateway:hidden@127.0.0.1:9/gateway",
            ADMIN_TOKEN: "a-token-long-enough-for-it",
            MASTER_KEY: Buffer.alloc(32).toString("base64")
          },
          "store"
        ]
      ] as const) {
        const found = yield* Effect.scoped(Effect.andThen(withEnvironment(env), diagnosis))
        assert.strictEqual(found.code, 1)
        const [broken] = found.of("broken")
        assert.strictEqual(broken?.check, check, found.out)
        assert.isString(broken?.remedy)
        assert.notInclude(found.out, "hidden")
      }
    }).pipe(Effect.scoped)
  )

  it.live("doctor has a finding with a remedy for each wrong setting", () =>
    Effect.gen(function* () {
      yield* withEnvironment({ BASE_URL: "http://localhost:8080", PORT: "none", LOG_LEVEL: "loud" })
      const broken = (yield* diagnosis).of("broken")
      assert.deepStrictEqual(
        broken.map(({ check, detail }) => [check, detail.split(":", 1)[0]]),
        [
          ["configuration", "PORT"],
          ["configuration", "LOG_LEVEL"]
        ]
      )
      for (const { remedy } of broken) assert.notMatch(remedy, /PORT|LOG_LEVEL/u)
    }).pipe(Effect.scoped)
  )

  it("print tables without control characters, aligned by the width of wide characters", () => {
    const rows = [{ name: "a\u001b[31mb\nc" }, { name: "東京" }]
    const text = table(rows, [
      { title: "NAME", of: ({ name }) => name },
      { title: "N", of: () => 1, isRight: true }
    ])
    assert.strictEqual(text, ["NAME       N", "a [31mb c  1", "東京       1"].join("\n"))
  })
})

/** Responds to each path with this body. */
const answering = (answers: Readonly<Record<string, readonly [type: string, body: string]>>) =>
  localServer((request, response) => {
    const [type, body] = answers[request.url?.split("?", 1)[0] ?? ""] ?? ["text/plain", ""]
    response.writeHead(200, { "content-type": type }).end(body)
  })

describe("a service of another release", () => {
  it.live("makes a command end with 1 and name it if rows or events have another form", () =>
    Effect.gen(function* () {
      const url = yield* answering({
        "/manage/v1/users": ["application/json", '{"data":[{"odd":1}],"next_cursor":null}'],
        "/manage/v1/service": ["application/json", '{"name":"Service"}'],
        "/manage/v1/events": ["text/event-stream", "data: {}\n\n"]
      })
      const env = { GATEWAY_URL: url, GATEWAY_API_KEY: "sk-x", ADMIN_TOKEN: "an-operator-token" }
      for (const args of [
        ["users", "list"],
        ["listen", "--forward", `${url}/hook`]
      ]) {
        const ran = yield* runCommand(args, env)
        assert.strictEqual(ran.code, 1, args.join(" "))
        assert.include(ran.error, url)
        assert.match(ran.error, /an unexpected form/u)
        assert.notMatch(ran.error, /SchemaError|fiber/u)
      }
    })
  )
})
