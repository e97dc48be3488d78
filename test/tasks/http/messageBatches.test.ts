import Anthropic, { APIError } from "@anthropic-ai/sdk"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { request as httpRequest } from "node:http"
import { text } from "node:stream/consumers"
import { MockVendor } from "../../../src/testing/index.ts"
import type { VendorServer } from "../../../src/testing/index.ts"
import { fails } from "../../support/fails.ts"
import { adminToken, readResult } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { polled, call, read, Running, runningGateway, strangersKey } from "../../support/running.ts"
import {
  batchReceipts,
  capturedOf,
  gatewayAt,
  micro,
  sumOf,
  taskIdOf,
  Vendor
} from "../../support/vendorBatches.ts"

/** docs/reference/vendor-batches.md#anthropics-form */

const clientOf = (base: string, apiKey?: string) =>
  Effect.map(
    Running,
    ({ key, url }) =>
      new Anthropic({ apiKey: apiKey ?? key, baseURL: `${url}${base}`, maxRetries: 0 })
  )
const client = clientOf("")

const refusal = (request: () => Promise<unknown>) =>
  Effect.promise(async () => {
    const error = await fails(request())
    if (!(error instanceof APIError)) throw error
    const body = error.error as { code: number; error: { type: string } }
    return { status: error.status, code: body.code, type: body.error.type, body }
  })

const message = (id: string, more: object = {}) => ({
  custom_id: id,
  params: {
    model: "claude-haiku-4-5",
    max_tokens: 50,
    messages: [{ role: "user" as const, content: `Say ${id}` }],
    ...more
  }
})

const create = (anthropic: Anthropic, requests: ReadonlyArray<ReturnType<typeof message>>) =>
  Effect.promise(() => anthropic.messages.batches.create({ requests: [...requests] }))

const ended = (anthropic: Anthropic, id: string) =>
  polled(
    () => anthropic.messages.batches.retrieve(id),
    ({ processing_status: status }) => status === "ended"
  )

const resultsOf = (anthropic: Anthropic, id: string) =>
  Effect.promise(async () => Array.fromAsync(await anthropic.messages.batches.results(id)))

const post = (body: string, headers: Record<string, string> = {}) =>
  Effect.flatMap(
    call("/v1/messages/batches", {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body
    }),
    (answer) =>
      Effect.map(
        Effect.promise(() => readResult(answer)),
        ({ json }) => ({ status: answer.status, json })
      )
  )

const strangersClient = Effect.flatMap(strangersKey, (key) => clientOf("", key))

liveLayer(runningGateway({ SIMULATOR_DELAY: "200 millis" }))(
  "batches of messages, in the sandbox",
  (it) => {
    it.effect("are created, read, listed and deleted by Anthropic's client", () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const batch = yield* create(anthropic, [message("a"), message("b")])
        assert.match(batch.id, /^msgbatch_[0-9a-f]{32}$/u)
        assert.deepInclude<object>(batch, {
          type: "message_batch",
          processing_status: "in_progress",
          ended_at: null,
          results_url: null,
          request_counts: { processing: 2, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
        })
        const early = yield* refusal(() => anthropic.messages.batches.delete(batch.id))
        assert.deepInclude<object>(early, { status: 409, code: 2010, type: "conflict_error" })
        const done = yield* ended(anthropic, batch.id)
        assert.deepInclude<object>(done.request_counts, { succeeded: 2, processing: 0 })
        assert.isNotNull(done.ended_at)
        const results = yield* resultsOf(anthropic, batch.id)
        assert.deepStrictEqual(
          results.map((it) => it.custom_id),
          ["a", "b"]
        )
        const [{ result }] = results as [(typeof results)[number]]
        assert.strictEqual(result.type, "succeeded")
        if (result.type !== "succeeded") return
        const [block] = result.message.content
        assert.match(block?.type === "text" ? block.text : "", /simulator/u)
        const second = yield* create(anthropic, [message("c")])
        yield* ended(anthropic, second.id)
        const pages = yield* Effect.promise(async () =>
          Array.fromAsync(anthropic.messages.batches.list({ limit: 1 }))
        )
        assert.deepStrictEqual(
          pages.map(({ id }) => id),
          [second.id, batch.id]
        )
        const newer = yield* Effect.promise(() =>
          anthropic.messages.batches.list({ before_id: batch.id })
        )
        assert.deepStrictEqual(
          newer.data.map(({ id }) => id),
          [second.id]
        )
        const deleted = yield* Effect.promise(() => anthropic.messages.batches.delete(batch.id))
        assert.deepStrictEqual(deleted, { id: batch.id, type: "message_batch_deleted" })
        const gone = yield* refusal(() => anthropic.messages.batches.retrieve(batch.id))
        assert.deepInclude<object>(gone, { status: 404, code: 2005, type: "not_found_error" })
        // Together with its files; the task and its charge stay
        assert.lengthOf((yield* read("/v1/files?limit=100")).json.data, 2)
        assert.isAbove(Number(yield* capturedOf(batch.id)), 0)
      })
    )

    it.effect("show their results even after the body of their task has been removed", () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const { id } = yield* create(anthropic, [message("a"), message("b")])
        yield* ended(anthropic, id)
        const sql = yield* SqlClient.SqlClient
        // As `BODY_RETENTION` does
        yield* sql`UPDATE tasks SET body = 'null' WHERE id = ${taskIdOf(id)}`
        const batch = yield* Effect.promise(() => anthropic.messages.batches.retrieve(id))
        assert.deepInclude<object>(batch.request_counts, { succeeded: 2, processing: 0 })
        assert.lengthOf(yield* resultsOf(anthropic, id), 2)
      })
    )

    it.effect("are refused with each fault by the index of its request", () =>
      Effect.gen(function* () {
        const before = (yield* read("/manage/v1/wallet")).json
        const files = (yield* read("/v1/files?limit=100")).json.data.length
        const requests = [
          message("a"),
          message("a"),
          message("a b"),
          message("d", { stream: true }),
          message("e", { max_tokens: 0 }),
          message("f", { model: "claude-none" }),
          { custom_id: "g", params: 1, extra: 1 }
        ]
        const { json, status } = yield* post(JSON.stringify({ requests }, null, 2))
        assert.strictEqual(status, 400)
        assert.deepInclude(json, { code: 2001, type: "error" })
        assert.strictEqual(json.error.type, "invalid_request_error")
        assert.deepStrictEqual(
          json.errors.map(({ pointer }: { pointer: string }) => pointer),
          [
            "#/requests/1/custom_id",
            "#/requests/2/custom_id",
            "#/requests/3/params/stream",
            "#/requests/4/params/max_tokens",
            "#/requests/5/params/model",
            "#/requests/6/extra",
            "#/requests/6/params"
          ]
        )
        assert.deepStrictEqual((yield* read("/manage/v1/wallet")).json, before)
        assert.lengthOf((yield* read("/v1/files?limit=100")).json.data, files)
      })
    )

    it.effect(
      "keep their requests for an hour until they are accepted, then as long as any file",
      () =>
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          // What a killed create would leave
          yield* sql`CREATE TABLE added_files (id text, seconds float8)`.unprepared
          yield* sql`
          CREATE FUNCTION note_file() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO added_files VALUES (NEW.id, extract(epoch FROM NEW.expires_at - NEW.created_at));
            RETURN NEW;
          END $$`.unprepared
          yield* sql`CREATE TRIGGER note_file BEFORE INSERT ON files
          FOR EACH ROW EXECUTE FUNCTION note_file()`.unprepared
          const anthropic = yield* client
          const { id } = yield* create(anthropic, [message("a")])
          const kept = yield* sql`
          SELECT a.seconds, extract(epoch FROM f.expires_at - f.created_at)::float8 AS kept FROM tasks t
          JOIN added_files a ON a.id = t.body ->> 'input_file_id' JOIN files f ON f.id = a.id
          WHERE t.id = ${taskIdOf(id)}`
          assert.deepStrictEqual<object>(kept, [{ seconds: 3600, kept: 30 * 86_400 }])
          yield* sql`DROP TRIGGER note_file ON files`.unprepared
          yield* ended(anthropic, id)
        })
    )

    it.effect("keep their requests while it is unknown whether they were accepted", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const files = sql`SELECT f.id FROM files f WHERE f.deleted_at IS NULL ORDER BY f.id`
        const before = yield* files
        yield* sql`
          CREATE FUNCTION refuse_task() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'no space left' USING errcode = '53100';
          END $$`.unprepared
        yield* sql`CREATE TRIGGER refuse_task BEFORE INSERT ON tasks
          FOR EACH ROW EXECUTE FUNCTION refuse_task()`.unprepared
        const { status } = yield* post(JSON.stringify({ requests: [message("a")] }))
        yield* sql`DROP TRIGGER refuse_task ON tasks`.unprepared
        assert.strictEqual(status, 503)
        assert.lengthOf(yield* files, before.length + 1)
      })
    )

    it.effect("need a key that allows every model they name", () =>
      Effect.gen(function* () {
        const { url, userId } = yield* Running
        const key = yield* Effect.promise(async () => {
          const answer = await fetch(`${url}/manage/v1/users/${userId}/api-keys`, {
            method: "POST",
            headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
            body: JSON.stringify({
              name: "haiku",
              scopes: ["inference"],
              allowed_models: ["claude-haiku-4-5"]
            })
          })
          return ((await answer.json()) as { key: string }).key
        })
        const limited = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 })
        const [haiku, sonnet] = [message("a"), message("b", { model: "claude-sonnet-4-5" })]
        for (const requests of [
          [haiku, sonnet],
          [sonnet, haiku]
        ]) {
          const refused = yield* refusal(() => limited.messages.batches.create({ requests }))
          assert.deepInclude<object>(refused, { status: 403, code: 1004 })
        }
        yield* ended(limited, (yield* create(limited, [haiku])).id)
      })
    )

    it.effect("send events to endpoints that filter for any of their models", () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const sql = yield* SqlClient.SqlClient
        const endpointFor = Effect.fnUntraced(function* (models: ReadonlyArray<string>) {
          const made = yield* call("/manage/v1/webhook-endpoints", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({
              url: `https://127.0.0.1:9/${models.join("/")}`,
              events: ["task.created", "task.succeeded"],
              filter: { models }
            })
          })
          const { json } = yield* Effect.promise(() => readResult(made))
          assert.strictEqual(made.status, 201, JSON.stringify(json))
          return json.id as string
        })
        const first = yield* endpointFor(["claude-haiku-4-5"])
        const second = yield* endpointFor(["other", "claude-sonnet-4-5"])
        const none = yield* endpointFor(["claude-opus-4-5"])
        const batch = yield* create(anthropic, [
          message("a"),
          message("b", { model: "claude-sonnet-4-5" })
        ])
        yield* ended(anthropic, batch.id)
        const alone = yield* create(anthropic, [message("c")])
        yield* ended(anthropic, alone.id)
        const typesOf = (id: string) =>
          Effect.map(
            sql`SELECT endpoint_id, event_type FROM deliveries WHERE task_id = ${taskIdOf(id)}`,
            (rows) => rows.map((it) => `${it["endpointId"]} ${it["eventType"]}`)
          )
        const both = (id: string) => [`${id} task.created`, `${id} task.succeeded`]
        assert.sameMembers(yield* typesOf(batch.id), [...both(first), ...both(second)])
        assert.sameMembers(yield* typesOf(alone.id), both(first))
        for (const id of [first, second, none]) {
          yield* call(`/manage/v1/webhook-endpoints/${id}`, { method: "DELETE" })
        }
      })
    )

    it.effect("name at most 20 models", () =>
      Effect.gen(function* () {
        const requests = Array.from({ length: 21 }, (_, n) =>
          message(`m${n}`, { model: `claude-haiku-4-5-202501${String(n + 1).padStart(2, "0")}` })
        )
        const { json, status } = yield* post(JSON.stringify({ requests }))
        assert.strictEqual(status, 400)
        assert.deepStrictEqual(
          json.errors.map(({ pointer }: { pointer: string }) => pointer),
          ["#/requests/20/params/model"]
        )
      })
    )

    it.effect("leave nothing behind if the body is not a list of requests", () =>
      Effect.gen(function* () {
        const files = (yield* read("/v1/files?limit=100")).json.data.length
        const bodies: ReadonlyArray<readonly [string, number]> = [
          ["", 2002],
          ["[]", 2002],
          ["{}", 2001],
          ['{"requests":{}}', 2001],
          ['{"requests":[]}', 2001],
          ['{"requests":[1]}', 2001],
          ['{"requests":[{}', 2002],
          ['{"requests":[{}],"more":1}', 2001],
          ['{"other":[]}', 2001]
        ]
        for (const [body, code] of bodies) {
          const { json, status } = yield* post(body)
          assert.deepStrictEqual([body, status, json.code], [body, 400, code])
        }
        assert.lengthOf((yield* read("/v1/files?limit=100")).json.data, files)
      })
    )

    it.effect("accept their own webhook, which is part of the idempotency hash", () =>
      Effect.gen(function* () {
        const files = (yield* read("/v1/files?limit=100&purpose=batch")).json.data.length
        const url = "https://127.0.0.1:1/batches"
        const webhook = { url, events: ["task.created"] }
        const body = (more: object) => JSON.stringify({ requests: [message("a")], ...more })
        const headers = { "idempotency-key": "with a webhook" }
        const created = yield* post(body({ webhook }), headers)
        assert.strictEqual(created.status, 200)
        const task = taskIdOf(created.json.id)
        const { data } = (yield* read(`/manage/v1/webhook-deliveries?task_id=${task}`)).json
        assert.deepStrictEqual(
          data.map(({ type, webhook_url }: Record<string, string>) => [type, webhook_url]),
          [["task.created", url]]
        )
        const again = yield* post(body({ webhook }), headers)
        assert.strictEqual(again.json.id, created.json.id)
        for (const other of [{}, { webhook: { url } }]) {
          const refused = yield* post(body(other), headers)
          assert.deepStrictEqual([refused.status, refused.json.code], [422, 2008])
        }
        const faults: ReadonlyArray<readonly [object, number, string]> = [
          [{ url: "http://127.0.0.1/" }, 2011, "#/webhook/url"],
          [{ url, secret: "mine" }, 2001, "#/webhook/secret"],
          [{}, 2001, "#/webhook/url"],
          [{ url, events: ["response.completed"] }, 2001, "#/webhook/events/0"]
        ]
        for (const [wrong, code, pointer] of faults) {
          const { json, status } = yield* post(body({ webhook: wrong }))
          assert.deepStrictEqual(
            [status, json.code, json.errors[0].pointer],
            [400, code, pointer],
            JSON.stringify(wrong)
          )
        }
        const broken = yield* post(body({}).replace("{", '{"webhook":{"url" "x"},'))
        assert.deepStrictEqual([broken.status, broken.json.code], [400, 2002])
        assert.lengthOf((yield* read("/v1/files?limit=100&purpose=batch")).json.data, files + 1)
        yield* ended(yield* client, created.json.id)
      })
    )

    it.effect("accept null as no webhook", () =>
      Effect.gen(function* () {
        const body = (more: object) => JSON.stringify({ requests: [message("a")], ...more })
        const headers = { "idempotency-key": "without a webhook" }
        const created = yield* post(body({ webhook: null }), headers)
        assert.strictEqual(created.status, 200)
        const again = yield* post(body({}), headers)
        assert.strictEqual(again.json.id, created.json.id)
        const task = taskIdOf(created.json.id)
        const { data } = (yield* read(`/manage/v1/webhook-deliveries?task_id=${task}`)).json
        assert.isEmpty(data)
        yield* ended(yield* client, created.json.id)
      })
    )

    it.effect("accept the API key where older clients send it", () =>
      Effect.gen(function* () {
        const { key, url } = yield* Running
        const statuses = yield* Effect.promise(() =>
          Promise.all(
            [key, "sk-wrong"].map(async (it) => {
              const headers = { "x-api-key": it }
              return (await fetch(`${url}/v1/messages/batches`, { headers })).status
            })
          )
        )
        assert.deepStrictEqual(statuses, [200, 401])
      })
    )

    it.effect("are shown only to their owner, and not as OpenAI's batches", () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const stranger = yield* strangersClient
        const batch = yield* create(anthropic, [message("a")])
        const requests = [
          () => stranger.messages.batches.retrieve(batch.id),
          () => stranger.messages.batches.cancel(batch.id),
          () => stranger.messages.batches.delete(batch.id),
          () => stranger.messages.batches.results(batch.id)
        ]
        for (const request of requests) {
          assert.deepInclude<object>(yield* refusal(request), { status: 404, code: 2005 })
        }
        assert.lengthOf((yield* Effect.promise(() => stranger.messages.batches.list())).data, 0)
        const as = yield* read(`/v1/batches/${batch.id.replace("msgbatch", "batch")}`)
        assert.strictEqual(as.json.code, 2005)
        yield* ended(anthropic, batch.id)
      })
    )

    it.effect("return the first response to a repeat, also below the vendor's path", () =>
      Effect.gen(function* () {
        const anthropic = yield* clientOf("/vendors/anthropic")
        const asked = { requests: [message("a")] }
        const headers = { "Idempotency-Key": "batch-1" }
        const create = read("/vendors/anthropic/v1/messages/batches", {
          method: "POST",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(asked)
        })
        const { json: first } = yield* create
        const files = (yield* read("/v1/files?limit=100&purpose=batch")).json.data.length
        yield* ended(anthropic, first.id)
        const response = yield* create
        assert.deepStrictEqual(response.json, first)
        assert.strictEqual(response.headers.get("idempotency-replayed"), "true")
        const other = yield* refusal(() =>
          anthropic.messages.batches.create({ requests: [message("b")] }, { headers })
        )
        assert.deepInclude<object>(other, { status: 422, code: 2008 })
        assert.lengthOf((yield* read("/v1/files?limit=100&purpose=batch")).json.data, files)
      })
    )

    it.effect("can be cancelled, which cancels each request and charges nothing", () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const batch = yield* Effect.promise(() =>
          anthropic.beta.messages.batches.create({ requests: [message("a"), message("b")] })
        )
        const cancelled = yield* Effect.promise(() => anthropic.messages.batches.cancel(batch.id))
        assert.deepInclude<object>(cancelled, {
          processing_status: "ended",
          request_counts: { processing: 0, succeeded: 0, errored: 0, canceled: 2, expired: 0 }
        })
        assert.deepStrictEqual<object>(yield* resultsOf(anthropic, batch.id), [
          { custom_id: "a", result: { type: "canceled" } },
          { custom_id: "b", result: { type: "canceled" } }
        ])
        assert.strictEqual(yield* capturedOf(batch.id), "0")
        const wallet = (yield* read("/manage/v1/wallet")).json
        assert.strictEqual(wallet.held_balance, "0.00")
      })
    )
  }
)

const inProgress = (anthropic: Anthropic, vendor: VendorServer, sold: number) =>
  Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20))).pipe(
    Effect.repeat({ until: () => vendor.sold === sold, times: 1000 }),
    Effect.as(anthropic)
  )

interface Sent {
  readonly requests: ReadonlyArray<{ readonly custom_id: string; readonly params: object }>
}

const mebibyte = 1024 * 1024

/** Announces a body of this length and sends none of it before the response. */
const announce = (bytes: number) =>
  Effect.flatMap(Running, ({ key, url }) =>
    Effect.promise(
      () =>
        new Promise<{ readonly status: number | undefined; readonly code: number }>(
          (resolve, reject) => {
            const headers = {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
              "content-length": String(bytes)
            }
            const path = `${url}/v1/messages/batches`
            const request = httpRequest(path, { method: "POST", headers }, (response) => {
              text(response).then((body) => {
                resolve({ status: response.statusCode, code: JSON.parse(body).code })
                request.destroy()
              }, reject)
            })
            request.on("error", reject)
            request.flushHeaders()
          }
        )
    )
  )

liveLayer(
  runningGateway({
    SIMULATOR_DELAY: "200 millis",
    MAX_BODY_BYTES: "65536",
    FILE_BYTES_PER_USER: "500000"
  })
)("the limits of batches of messages", (it) => {
  it.effect("are 256 MiB, whatever the limit of other bodies", () =>
    Effect.gen(function* () {
      const { key, url } = yield* Running
      const anthropic = yield* client
      const long = message("a".repeat(64), { system: "x".repeat(200_000) })
      const created = yield* create(anthropic, [long])
      const files = (yield* read("/v1/files?limit=100")).json.data
      assert.isAbove(files[0].bytes, 200_000)
      yield* ended(anthropic, created.id)
      const before = (yield* read("/v1/files?limit=100")).json.data.length
      const refused = yield* announce(256 * mebibyte + 1)
      assert.deepStrictEqual(refused, { status: 413, code: 2004 })
      assert.lengthOf((yield* read("/v1/files?limit=100")).json.data, before)
      const { status } = yield* Effect.promise(() =>
        fetch(`${url}/v1/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: " ".repeat(65_537)
        })
      )
      assert.strictEqual(status, 413)
    })
  )

  it.effect("let a repeat get the first response even when the file quota is used up", () =>
    Effect.gen(function* () {
      const body = (id: string) =>
        JSON.stringify({ requests: [message(id, { system: "x".repeat(200_000) })] })
      const headers = { "idempotency-key": "at the quota" }
      const first = yield* post(body("a"), headers)
      assert.strictEqual(first.status, 200)
      const files = (yield* read("/v1/files?limit=100&purpose=batch")).json.data
      const refused = yield* post(body("b"))
      assert.deepStrictEqual([refused.status, refused.json.code], [429, 1202])
      assert.deepStrictEqual((yield* post(body("a"), headers)).json, first.json)
      const other = yield* post(body("b"), headers)
      assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
      assert.deepStrictEqual((yield* read("/v1/files?limit=100&purpose=batch")).json.data, files)
      yield* ended(yield* client, first.json.id)
    })
  )
})

liveLayer(
  gatewayAt("anthropic", {
    script: {
      default: [
        MockVendor.result("1 second"),
        MockVendor.result("300 millis"),
        MockVendor.result("1 second"),
        MockVendor.result("1 minute"),
        MockVendor.result("1 second"),
        MockVendor.result("1 minute")
      ]
    }
  })
)("a batch of messages at the vendor", (it) => {
  it.effect("is charged the sum of its receipts once, at half the price", () =>
    Effect.gen(function* () {
      const anthropic = yield* client
      const vendor = yield* Vendor
      const requests = Array.from({ length: 120 }, (_, n) =>
        message(n % 40 === 7 ? `fails-${n}` : `r${n}`)
      )
      const { data: batch, response } = yield* Effect.promise(() =>
        anthropic.messages.batches.create({ requests }).withResponse()
      )
      const held = response.headers.get("x-service-cost") ?? ""
      const done = yield* ended(anthropic, batch.id)
      assert.deepInclude<object>(done.request_counts, { succeeded: 117, errored: 3 })
      const results = yield* resultsOf(anthropic, batch.id)
      assert.deepStrictEqual(
        results.map((it) => it.custom_id),
        requests.map((it) => it.custom_id)
      )
      const receipts = yield* batchReceipts(batch.id)
      assert.strictEqual(receipts.length, 120)
      assert.strictEqual(receipts.filter(({ outcome }) => outcome === "released").length, 3)
      const sum = sumOf(receipts)
      assert.strictEqual(String(sum), yield* capturedOf(batch.id))
      assert.isAbove(Number(sum), 0)
      assert.isAtLeast(Number(held) * 1_000_000, Number(sum))

      // Half of what the same calls cost
      const expected = results.reduce((total, { result }) => {
        if (result.type !== "succeeded") return total
        const { input_tokens: input, output_tokens: output } = result.message.usage
        const micros = BigInt(input) * 50_000_000n + BigInt(output) * 250_000_000n
        return total + (micros + 999_999n) / 1_000_000n
      }, 0n)
      assert.strictEqual(sum, expected)

      // The requests were sent once, each with the batch's mark before its name
      const sent = vendor.requests.filter(
        ({ method, path }) => method === "POST" && path === "/v1/messages/batches"
      )
      assert.lengthOf(sent, 1)
      const [only] = sent
      if (only === undefined) return
      const { requests: there } = only.json as Sent
      const mark = there[0]?.custom_id.slice(0, 10)
      assert.deepStrictEqual<object>(
        there,
        requests.map(({ custom_id: name, params }) => ({ custom_id: `${mark}${name}`, params }))
      )
      assert.strictEqual(only.headers["anthropic-version"], "2023-06-01")
    })
  )

  it.effect(
    "is charged neither for a result of an unknown request nor for a second result of a request",
    () =>
      Effect.gen(function* () {
        const anthropic = yield* client
        const batch = yield* create(anthropic, [
          message("a"),
          message("repeats"),
          message("invents")
        ])
        yield* ended(anthropic, batch.id)
        // As the vendor wrote them
        const results = yield* resultsOf(anthropic, batch.id)
        assert.deepStrictEqual(
          results.map((it) => it.custom_id),
          ["a", "repeats", "repeats", "invents", "invented"]
        )
        const receipts = yield* batchReceipts(batch.id)
        assert.sameMembers(
          receipts.map(({ custom_id: id, outcome }) => `${id} ${outcome}`),
          ["a settled", "repeats settled", "invents settled"]
        )
        assert.strictEqual(String(sumOf(receipts)), yield* capturedOf(batch.id))
      })
  )

  it.effect("is charged for each request at the price of its own model", () =>
    Effect.gen(function* () {
      const anthropic = yield* client
      const vendor = yield* Vendor
      // Micro-credits per million tokens in batches: of input, of output
      const rates = {
        "claude-haiku-4-5": [50_000_000n, 250_000_000n],
        "claude-sonnet-4-5": [150_000_000n, 750_000_000n],
        "claude-opus-4-5-20251101": [250_000_000n, 1_250_000_000n]
      } as const
      const names = Object.keys(rates) as Array<keyof typeof rates>
      const modelOf = (n: number) => names[n % 3] as keyof typeof rates
      const asked = Array.from({ length: 40 }, (_, n) =>
        message(n === 1 || n === 30 ? `fails-${n}` : `s${n}`, { model: modelOf(n) })
      )
      const usage = Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql<{ model: string; credits: string; tasks: number }>`
            SELECT model, sum(credits)::text AS credits, sum(tasks)::int AS tasks FROM usage_days GROUP BY model`
      )
      const before = yield* usage
      const batch = yield* create(anthropic, asked)
      const held = (yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)).json
      assert.strictEqual(held.model, "claude-haiku-4-5")
      yield* ended(anthropic, batch.id)
      const results = yield* resultsOf(anthropic, batch.id)
      const costs = new Map(
        results.map(({ custom_id: name, result }, n) => {
          if (result.type !== "succeeded") return [name, 0n]
          assert.strictEqual(result.message.model, modelOf(n))
          const { input_tokens: input, output_tokens: output } = result.message.usage
          const [perInput, perOutput] = rates[modelOf(n)]
          const micros = BigInt(input) * perInput + BigInt(output) * perOutput
          return [name, (micros + 999_999n) / 1_000_000n]
        })
      )
      const receipts = yield* batchReceipts(batch.id)
      assert.lengthOf(receipts, 40)
      for (const { cost, custom_id: name, model } of receipts) {
        const n = asked.findIndex((it) => it.custom_id === name)
        assert.deepStrictEqual([name, model, micro(cost)], [name, modelOf(n), costs.get(name)])
      }
      const captured = yield* capturedOf(batch.id)
      assert.strictEqual(String(sumOf(receipts)), captured)
      assert.lengthOf(
        vendor.requests.filter(
          ({ json, method, path }) =>
            method === "POST" &&
            path === "/v1/messages/batches" &&
            (json as Sent).requests.length === 40
        ),
        1
      )

      // Usage shows the charge of each model; the task counts for the first one
      const sumOfModel = (model: string) =>
        sumOf(receipts.filter((receipt) => receipt.model === model))
      const after = yield* usage
      const grown = names.map((model) => {
        const [now, then] = [after, before].map((rows) => rows.find((row) => row.model === model))
        return [
          model,
          BigInt(now?.credits ?? 0) - BigInt(then?.credits ?? 0),
          (now?.tasks ?? 0) - (then?.tasks ?? 0)
        ]
      })
      assert.deepStrictEqual(
        grown,
        names.map((model, n) => [model, sumOfModel(model), n === 0 ? 1 : 0])
      )
      const sql = yield* SqlClient.SqlClient
      const rebuilt = yield* sql`
        SELECT usage_rebuild(t.user_id, (t.updated_at AT TIME ZONE 'UTC')::date, t.created_at - interval '1 day') AS changed
        FROM tasks t WHERE t.id = ${taskIdOf(batch.id)}`
      assert.deepStrictEqual<object>(rebuilt, [{ changed: false }])
    })
  )

  it.effect("is cancelled there, and charged for its results", () =>
    Effect.gen(function* () {
      const anthropic = yield* client
      const vendor = yield* Vendor
      const before = vendor.sold
      const requests = Array.from({ length: 10 }, (_, n) => message(`c${n}`))
      const batch = yield* Effect.promise(() =>
        anthropic.messages.batches.create(
          { requests },
          { headers: { "anthropic-beta": "output-300k" } }
        )
      )
      yield* inProgress(anthropic, vendor, before + 1)
      assert.strictEqual(
        vendor.requests.findLast(({ path }) => path === "/v1/messages/batches")?.headers[
          "anthropic-beta"
        ],
        "output-300k"
      )
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 200)))
      const cancelling = yield* Effect.promise(() => anthropic.messages.batches.cancel(batch.id))
      assert.strictEqual(cancelling.processing_status, "canceling")
      assert.isNotNull(cancelling.cancel_initiated_at)
      const done = yield* ended(anthropic, batch.id)
      assert.deepInclude<object>(done.request_counts, { succeeded: 5, canceled: 5 })
      const receipts = yield* batchReceipts(batch.id)
      assert.strictEqual(receipts.filter(({ outcome }) => outcome === "settled").length, 5)
      assert.strictEqual(String(sumOf(receipts)), yield* capturedOf(batch.id))
      assert.lengthOf(yield* resultsOf(anthropic, batch.id), 10)
      const again = yield* refusal(() => anthropic.messages.batches.cancel(batch.id))
      assert.deepInclude<object>(again, { status: 409, code: 2010 })
    })
  )

  it.effect("expires, and is charged for its results", () =>
    Effect.gen(function* () {
      const anthropic = yield* client
      const requests = ["a", "expires-1", "fails-2"].map((id) => message(id))
      const batch = yield* create(anthropic, requests)
      const done = yield* ended(anthropic, batch.id)
      assert.deepStrictEqual<object>(done.request_counts, {
        processing: 0,
        succeeded: 1,
        errored: 1,
        canceled: 0,
        expired: 1
      })
      assert.deepStrictEqual(
        (yield* resultsOf(anthropic, batch.id)).map(({ result }) => result.type),
        ["succeeded", "expired", "errored"]
      )
      assert.strictEqual(String(sumOf(yield* batchReceipts(batch.id))), yield* capturedOf(batch.id))
      const { json: task } = yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)
      assert.strictEqual(task.error.code, 4005)
    })
  )

  it.effect("is found in the vendor's list when the response to its submit was lost", () =>
    Effect.gen(function* () {
      const anthropic = yield* client
      const vendor = yield* Vendor
      const before = vendor.sold
      vendor.failNext(MockVendor.refused("AMBIGUOUS", "the connection broke"))
      const batch = yield* create(anthropic, [message("lost"), message("found")])
      const path = `/manage/v1/tasks/${taskIdOf(batch.id)}`
      const { json: task } = yield* read(path).pipe(
        Effect.tap(Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))),
        Effect.repeat({
          until: ({ json }) => json.attempts[0]?.state === "submitted",
          times: 600
        })
      )
      assert.lengthOf(task.attempts, 1)
      yield* Effect.promise(() => anthropic.messages.batches.cancel(batch.id))
      assert.strictEqual(vendor.sold, before + 1)
      const done = yield* ended(anthropic, batch.id)
      assert.deepInclude<object>(done.request_counts, { succeeded: 1, canceled: 1 })
    })
  )
})
