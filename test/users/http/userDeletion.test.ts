import { assert, layer } from "@effect/vitest"
import { Effect, Option } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { existsSync } from "node:fs"
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { ArtifactBlobs } from "../../../src/artifacts/ArtifactBlobs.ts"
import { Artifacts } from "../../../src/artifacts/Artifacts.ts"
import { TaskId, UserId } from "../../../src/domain/Ids.ts"
import type { FileId } from "../../../src/domain/Ids.ts"
import { picture } from "../../support/bodies.ts"
import { signedIn, signIn } from "../../support/browser.ts"
import {
  advance,
  callWith,
  eventually,
  GatewayHttp,
  layerGateway,
  makeUser,
  operator
} from "../../support/gateway.ts"
import { contents } from "../../support/tableContents.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"

/** docs/reference/privacy.md */

const manage = "/manage/v1"
const image = "/vendors/alibaba/v1/text-to-image-max/generation"
const edit = "/vendors/alibaba/v1/image-edit/generation"

let made = 0

/** A user with personal data everywhere: two ended tasks, a running one, an endpoint, and a delivery. */
const makeWorld = Effect.gen(function* () {
  made += 1
  const email = `marker-${made}@example.com`
  const user = yield* operator("POST", `${manage}/users`, { email, name: "Marker Person" })
  const at = `${manage}/users/${user.json.id}`
  const scopes = ["inference", "manage"]
  const key = (yield* operator("POST", `${at}/api-keys`, { name: "Marker key", scopes })).json.key
  yield* operator("POST", `${at}/top-ups`, { amount: "1000.00", note: "For the marker" })
  const call = callWith(key)
  yield* call("POST", `${manage}/webhook-endpoints`, {
    url: "https://hooks.example.com/marker",
    description: "The marker's endpoint",
    events: ["task.succeeded", "task.created"]
  })
  const prompt = { prompt: "A marker, painted in oil" }
  const ended = yield* call("POST", image, prompt, { "idempotency-key": `marker-${made}` })
  assert.strictEqual(ended.status, 202, ended.text)
  const edited = yield* call("POST", edit, { ...prompt, images: [picture] })
  assert.strictEqual(edited.status, 202, edited.text)
  yield* advance("8 seconds")
  yield* eventually(
    call("GET", `${image}/${ended.json.task_info.id}`),
    ({ json }) => json.task_info.status === "completed"
  )
  const running = yield* call("POST", image, prompt)
  const sql = yield* SqlClient
  yield* sql`
    INSERT INTO audit_entries (id, created_at, type, actor_type, actor_user_id, user_id, ip_address, changes)
    VALUES (${`aud_${made}`}, now(), 'createApiKey', 'api_key', ${user.json.id}, ${user.json.id},
      '192.0.2.77', '{}')`
  yield* sql`
    UPDATE delivery_attempts SET answer = 'Hello marker', remote_address = '192.0.2.78'
    WHERE endpoint_id IN (SELECT id FROM webhook_endpoints WHERE user_id = ${user.json.id})`
  return {
    id: user.json.id as string,
    email,
    at,
    key: key as string,
    call,
    running: running.json.task_info.id as string
  }
})

const personal = /marker|192\.0\.2\.7[78]/iu

/** The places in the database that still contain personal data. */
const traces = Effect.map(contents, (tables) =>
  [...tables].flatMap(([name, rows]) =>
    rows.flatMap((row) =>
      Object.entries(row).flatMap(([column, value]) => {
        const text =
          typeof value === "string" && value.startsWith("\\x")
            ? Buffer.from(value.slice(2), "hex").toString("latin1")
            : JSON.stringify(value)
        return personal.test(text) ? [`${name}.${column}`] : []
      })
    )
  )
)

const ledger = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient
  return yield* sql`
    SELECT seq, kind, amount, settled_after, held_after, operation_id FROM wallet_entries
    WHERE user_id = ${id} ORDER BY seq`
})

layer(layerGateway(), { timeout: "120 seconds" })("a user is deleted", (it) => {
  it.effect(
    "access and tasks end at once, and only the ledger is left, without personal data",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const world = yield* makeWorld
        const before = yield* ledger(world.id)
        assert.includeMembers(yield* traces, [
          "users.email",
          "users.name",
          "api_keys.name",
          "webhook_endpoints.url",
          "webhook_endpoints.description",
          "tasks.body",
          "wallet_entries.note",
          "delivery_attempts.answer",
          "audit_entries.ip_address"
        ])

        const deleted = yield* operator("DELETE", world.at)
        assert.strictEqual(deleted.status, 202, deleted.text)
        assert.deepInclude(deleted.json, { id: world.id, deleted: true, erased_at: null })
        for (const [method, path] of [
          ["GET", `${manage}/wallet`],
          ["POST", image]
        ] as const) {
          const refused = yield* world.call(method, path, method === "POST" ? {} : undefined)
          assert.deepStrictEqual([refused.status, refused.json.code], [401, 1003])
        }
        assert.strictEqual((yield* operator("GET", world.at)).status, 404)
        assert.strictEqual((yield* operator("PATCH", world.at, { name: "x" })).status, 404)
        const keys = yield* operator("POST", `${world.at}/api-keys`, { name: "x" })
        assert.strictEqual(keys.status, 404)
        // Nothing would erase these notes
        for (const change of ["top-ups", "adjustments"]) {
          const body = { amount: "5.00", note: "For the marker's widow" }
          const refused = yield* operator("POST", `${world.at}/${change}`, body)
          assert.deepStrictEqual([refused.status, refused.json.code], [404, 2005])
        }
        const users = yield* operator("GET", `${manage}/users?limit=100`)
        assert.notInclude(users.text, world.id)
        // The owner of the address may register again
        const again = yield* operator("POST", `${manage}/users`, { email: world.email })
        assert.strictEqual(again.status, 201)
        yield* operator("DELETE", `${manage}/users/${again.json.id}`)

        yield* advance("5 seconds")
        yield* eventually(traces, (found) => found.length === 0)
        const [task] = yield* sql`
        SELECT status, error ->> 'code' AS code FROM tasks WHERE id = ${world.running}`
        assert.deepStrictEqual(task, { status: "failed", code: "4004" })
        assert.deepStrictEqual(yield* sql`SELECT id FROM artifacts WHERE user_id = ${world.id}`, [])
        const after = yield* ledger(world.id)
        assert.deepStrictEqual(after.slice(0, before.length), [...before])
        const [wallet] = yield* sql`SELECT held FROM wallets WHERE user_id = ${world.id}`
        assert.deepStrictEqual(wallet, { held: 0n })
        assert.strictEqual((yield* operator("GET", `${world.at}/wallet`)).status, 200)
      })
  )

  it.effect("sessions, links and the OpenID identity end with the user", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { at, id, key } = yield* makeWorld
      const browser = yield* signedIn({ api_key: key })
      const link = yield* operator("POST", `${at}/sign-in-links`)
      yield* sql`UPDATE users SET oidc_subject = 'marker' WHERE id = ${id}`
      assert.strictEqual((yield* browser.call("GET", `${manage}/wallet`)).status, 200)
      yield* operator("DELETE", at)
      const ended = yield* browser.call("GET", `${manage}/wallet`)
      assert.deepStrictEqual([ended.status, ended.json.code], [401, 1006])
      const spending = yield* browser.call("POST", image, { prompt: "x" })
      assert.deepStrictEqual([spending.status, spending.json.code], [401, 1006])
      const refused = yield* signIn({ link: link.json.url })
      assert.deepStrictEqual([refused.status, refused.json.code], [401, 1005])
      assert.deepStrictEqual(yield* sql`SELECT id FROM sessions WHERE user_id = ${id}`, [])
      const [user] = yield* sql`SELECT oidc_subject FROM users WHERE id = ${id}`
      assert.deepStrictEqual(user, { oidcSubject: null })
    })
  )

  it.effect(
    "what was admitted before the deletion is erased too, and then the erasure is over",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const world = yield* makeWorld
        yield* operator("DELETE", world.at)
        // The first pass has ended; it revoked the keys again, and the next pass is due after the grace period
        const isOver = sql`
        SELECT 1 FROM users WHERE id = ${world.id} AND erasure_due_at > deleted_at`
        yield* eventually(Effect.andThen(advance("1 second"), isOver), (rows) => rows.length > 0)
        const state = Effect.map(operator("DELETE", world.at), ({ json }) => json.erased_at)
        assert.isNull(yield* state)
        yield* sql`UPDATE api_keys SET revoked_at = NULL WHERE user_id = ${world.id}`
        const late = yield* world.call("POST", image, { prompt: "A late marker" })
        assert.strictEqual(late.status, 202, late.text)
        yield* sql`UPDATE api_keys SET revoked_at = created_at WHERE user_id = ${world.id}`
        yield* eventually(
          Effect.andThen(advance("30 seconds", "10 seconds"), state),
          (erasedAt) => erasedAt !== null
        )
        assert.deepStrictEqual(yield* sql`SELECT id FROM artifacts WHERE user_id = ${world.id}`, [])
        assert.deepStrictEqual(yield* traces, [])
      })
  )

  it.effect("inputs of a create whose process died before it was accepted are erased too", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const artifacts = yield* Artifacts
      const { at, id } = yield* makeWorld
      const input = yield* artifacts.putInput({
        userId: UserId.make(id),
        taskId: TaskId.make("019a0000-0000-7000-8000-000000000001"),
        mime: "image/png",
        bytes: Buffer.from("A marker")
      })
      yield* operator("DELETE", at)
      yield* eventually(
        Effect.andThen(advance("2 seconds"), sql`SELECT id FROM artifacts WHERE user_id = ${id}`),
        (rows) => rows.length === 0
      )
      assert.isTrue(Option.isNone(yield* artifacts.read(input.id)))
    })
  )

  it.effect("a pass that fails is repeated until it succeeds", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const world = yield* makeWorld
      yield* sql`ALTER TABLE tasks ADD CONSTRAINT kept CHECK (body <> 'null') NOT VALID`
      yield* operator("DELETE", world.at)
      yield* advance("12 seconds")
      const left = yield* traces
      yield* sql`ALTER TABLE tasks DROP CONSTRAINT kept`
      assert.include(left, "tasks.body")
      yield* eventually(Effect.andThen(advance("6 seconds"), traces), (left) => left.length === 0)
    })
  )

  it.effect("only the operator deletes; an unknown user is 404", () =>
    Effect.gen(function* () {
      const user = yield* makeUser()
      const own = yield* user.call("DELETE", `${manage}/users/${user.id}`)
      assert.deepStrictEqual([own.status, own.json.code], [403, 1004])
      const id = "019a0000-0000-7000-8000-000000000000"
      assert.strictEqual((yield* operator("DELETE", `${manage}/users/${id}`)).status, 404)
    })
  )

  it.effect("files and receipts of batches are exported, and erased with their user", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const user = yield* makeUser()
      const at = `${manage}/users/${user.id}`
      const created = yield* user.call("POST", "/v1/messages/batches", {
        requests: ["marker-1", "marker-2"].map((custom_id) => ({
          custom_id,
          params: {
            model: "claude-haiku-4-5",
            max_tokens: 10,
            messages: [{ role: "user", content: "A marker" }]
          }
        }))
      })
      assert.strictEqual(created.status, 200, created.text)
      const batch = `/v1/messages/batches/${created.json.id}`
      yield* eventually(
        Effect.andThen(advance("2 seconds"), user.call("GET", batch)),
        ({ json }) => json.processing_status === "ended"
      )
      const results = yield* user.call("GET", `${batch}/results`)
      assert.lengthOf(results.text.trim().split("\n"), 2, results.text)
      const exported = (yield* user.call("GET", `${at}/export`)).text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
      const of = (object: string) => exported.filter((it) => it.object === object)
      assert.sameMembers(
        of("file").map(({ purpose }) => purpose),
        ["batch", "batch_output"]
      )
      assert.sameMembers(
        of("batch_receipt").map((it) => it.custom_id),
        ["marker-1", "marker-2"]
      )
      const ids = of("file").map(({ id }) => id as FileId)
      const blobs = yield* ArtifactBlobs
      const isKept = Effect.map(
        Effect.forEach(ids, (id) => blobs.stream(id, { start: 0, end: 0 })),
        (found) => found.map(Option.isSome)
      )
      assert.deepStrictEqual(yield* isKept, [true, true])

      yield* operator("DELETE", at)
      yield* eventually(
        Effect.andThen(advance("2 seconds"), isKept),
        (found) => !found.includes(true)
      )
      yield* eventually(
        sql`SELECT custom_id FROM batch_receipts WHERE user_id = ${user.id} AND custom_id IS NOT NULL`,
        (rows) => rows.length === 0
      )
      assert.lengthOf(yield* sql`SELECT 1 FROM files WHERE user_id = ${user.id}`, 0)
      // The charges stay
      assert.lengthOf(yield* sql`SELECT 1 FROM batch_receipts WHERE user_id = ${user.id}`, 2)
    })
  )

  it.effect(
    "the export has everything of the user, and only the user and the operator may read it",
    () =>
      Effect.gen(function* () {
        const world = yield* makeWorld
        const other = yield* makeUser()
        const path = `${world.at}/export`
        yield* signedIn({ api_key: world.key })
        const answer = yield* operator("GET", path)
        assert.strictEqual(answer.status, 200, answer.text)
        assert.match(answer.headers.get("content-type")!, /^application\/x-ndjson/u)
        const lines = answer.text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line))
        const count = (object: string) => lines.filter((it) => it.object === object).length
        assert.deepInclude(lines[0], { object: "user", id: world.id, email: world.email })
        assert.strictEqual(count("api_key"), 1)
        assert.strictEqual(count("session"), 1)
        assert.strictEqual(count("task"), 3)
        assert.strictEqual(count("webhook_endpoint"), 1)
        assert.isAbove(count("wallet_entry"), 3)
        assert.isAbove(count("webhook_delivery"), 2)
        assert.isAbove(count("audit_entry"), 2)
        assert.deepInclude(
          lines.find((it) => it.object === "wallet_entry"),
          { kind: "top_up", amount: "1000.00", note: "For the marker" }
        )
        assert.include(answer.text, "A marker, painted in oil")
        for (const secret of [world.key, "key_hash", "password", "secret", "the page"]) {
          assert.notInclude(answer.text, secret)
        }
        assert.strictEqual((yield* world.call("GET", path)).status, 200)
        assert.strictEqual((yield* other.call("GET", path)).status, 403)
      })
  )
})

const media = temporaryFolder("media")

layer(layerGateway({ env: { ARTIFACT_STORE: media } }), { timeout: "120 seconds" })(
  "a user is deleted whose media cannot be removed yet",
  (it) => {
    for (const kind of ["media", "file"]) {
      it.effect(`the erasure is not over before: ${kind}`, () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient
          const { at, id, key } = yield* makeWorld
          const form = new FormData()
          form.set("purpose", "batch")
          form.set("file", new File(["{}"], "requests.jsonl"))
          const http = yield* GatewayHttp
          const headers = { authorization: `Bearer ${key}` }
          const made = yield* http.fetch("/v1/files", { method: "POST", headers, body: form })
          assert.strictEqual(made.status, 200)
          const rows = yield* sql<{ readonly name: string }>`
            SELECT id AS name FROM ${sql(kind === "media" ? "artifacts" : "files")} WHERE user_id = ${id}`
          const names = new Set(rows.map(({ name }) => name))
          const stored = yield* Effect.promise(() =>
            readdir(media, { recursive: true, withFileTypes: true })
          )
          // A medium of the running task may be half-written, under another name
          const paths = stored
            .filter((it) => it.isFile() && names.has(it.name))
            .map(({ name, parentPath }) => join(parentPath, name))
          assert.isNotEmpty(paths)
          // A folder that is not empty is not removed
          yield* Effect.promise(async () => {
            for (const path of paths) {
              await rename(path, `${path}.kept`)
              await mkdir(path)
              await writeFile(join(path, "blocks"), "")
            }
          })
          yield* operator("DELETE", at)
          yield* sql`UPDATE users SET deleted_at = deleted_at - interval '10 minutes' WHERE id = ${id}`
          const state = Effect.map(operator("DELETE", at), ({ json }) => json.erased_at)
          const left = sql`SELECT 1 FROM tasks WHERE user_id = ${id} AND body <> 'null'`
          yield* eventually(Effect.andThen(advance("1 second"), left), (rows) => rows.length === 0)
          yield* advance("12 seconds")
          assert.isNull(yield* state)
          yield* Effect.promise(async () => {
            for (const path of paths) {
              await rm(path, { recursive: true })
              await rename(`${path}.kept`, path)
            }
          })
          yield* eventually(Effect.andThen(advance("2 seconds"), state), (it) => it !== null)
          assert.isEmpty(paths.filter((path) => existsSync(path)))
        })
      )
    }
  }
)
