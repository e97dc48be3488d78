import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type OpenAI from "openai"
import type { Batch } from "openai/resources/batches"
import { MockVendor } from "../../../src/testing/index.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { openAiAt, refusal, strangersOpenAi } from "../../support/openAiClient.ts"
import { polled, call, json, metricsText, read, runningGateway } from "../../support/running.ts"
import {
  batchReceipts,
  capturedOf,
  gatewayAt,
  micro,
  sumOf,
  taskIdOf,
  Vendor
} from "../../support/vendorBatches.ts"

/** docs/reference/vendor-batches.md, docs/reference/files.md */

const client = openAiAt()

const chat = (id: string, more: object = {}) => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: {
    model: "gpt-4o-mini",
    messages: [{ role: "user", content: `Say ${id}` }],
    max_tokens: 50,
    ...more
  }
})

const fileOf = (lines: ReadonlyArray<object>, name = "requests.jsonl") =>
  new File([lines.map((line) => `${JSON.stringify(line)}\n`).join("")], name)

const upload = (openai: OpenAI, lines: ReadonlyArray<object>) =>
  Effect.promise(() => openai.files.create({ purpose: "batch", file: fileOf(lines) }))

const batchOf = (fileId: string) => ({
  input_file_id: fileId,
  endpoint: "/v1/chat/completions" as const,
  completion_window: "24h" as const
})

const create = (openai: OpenAI, fileId: string, more: object = {}) =>
  Effect.promise(() => openai.batches.create({ ...batchOf(fileId), ...more }))

const isOver = ({ status }: Batch) =>
  ["completed", "failed", "expired", "cancelled"].includes(status)

const ended = (openai: OpenAI, id: string) => polled(() => openai.batches.retrieve(id), isOver)

const textOf = (openai: OpenAI, id: string | null | undefined) =>
  Effect.promise(async () => (await openai.files.content(id ?? "")).text())

liveLayer(runningGateway({ SIMULATOR_DELAY: "200 millis" }))(
  "OpenAI's routes of files and batches in the sandbox",
  (it) => {
    it.effect("create, read, list and delete for OpenAI's client", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const file = yield* upload(openai, [chat("a"), chat("b")])
        assert.match(file.id, /^file-[0-9a-f]{32}$/u)
        assert.deepInclude<object>(file, {
          object: "file",
          purpose: "batch",
          filename: "requests.jsonl",
          status: "processed"
        })
        assert.strictEqual(
          yield* textOf(openai, file.id),
          [chat("a"), chat("b")].map((line) => `${JSON.stringify(line)}\n`).join("")
        )
        const batch = yield* create(openai, file.id, { metadata: { order: "17" } })
        assert.match(batch.id, /^batch_[0-9a-f]{32}$/u)
        assert.deepInclude<object>(batch, {
          object: "batch",
          endpoint: "/v1/chat/completions",
          input_file_id: file.id,
          completion_window: "24h",
          metadata: { order: "17" },
          output_file_id: null,
          error_file_id: null
        })
        const done = yield* ended(openai, batch.id)
        assert.strictEqual(done.status, "completed")
        assert.deepStrictEqual(done.request_counts, { total: 2, completed: 2, failed: 0 })
        const lines = (yield* textOf(openai, done.output_file_id))
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line))
        assert.deepStrictEqual(
          lines.map((line) => line.custom_id),
          ["a", "b"]
        )
        assert.match(lines[0].response.body.choices[0].message.content, /simulator/u)
        const listed = yield* Effect.promise(() => openai.batches.list({ limit: 1 }))
        assert.deepStrictEqual(
          listed.data.map(({ id }) => id),
          [batch.id]
        )
        const files = yield* Effect.promise(() => openai.files.list({ order: "asc" }))
        assert.deepStrictEqual(
          files.data.map(({ purpose }) => purpose),
          ["batch", "batch_output"]
        )
        const deleted = yield* Effect.promise(() => openai.files.delete(file.id))
        assert.isTrue(deleted.deleted)
        assert.deepInclude(yield* refusal(() => openai.files.retrieve(file.id)), {
          status: 404,
          code: "2005"
        })
      })
    )

    it.effect("count the results of a batch after the body of its task has been removed", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const file = yield* upload(openai, [chat("a"), chat("b")])
        const { id } = yield* create(openai, file.id)
        yield* ended(openai, id)
        const sql = yield* SqlClient
        // As `BODY_RETENTION` does
        yield* sql`UPDATE tasks SET body = 'null' WHERE id = ${taskIdOf(id)}`
        const batch = yield* Effect.promise(() => openai.batches.retrieve(id))
        assert.deepStrictEqual(batch.request_counts, { total: 2, completed: 2, failed: 0 })
      })
    )

    it.effect("skip a byte order mark before the requests, as before any JSON", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const text = `${JSON.stringify(chat("a"))}\n`
        for (const mark of ["\uFEFF", "\uFEFF\uFEFF"]) {
          const marked = new File([mark, text], "marked.jsonl")
          const file = yield* Effect.promise(() =>
            openai.files.create({ purpose: "batch", file: marked })
          )
          if (mark.length === 2) {
            const refused = yield* refusal(() =>
              openai.batches.create({
                input_file_id: file.id,
                endpoint: "/v1/chat/completions",
                completion_window: "24h"
              })
            )
            assert.deepInclude(refused, { status: 400, code: "2001" })
            continue
          }
          assert.strictEqual(file.bytes, Buffer.byteLength(text))
          assert.strictEqual(yield* textOf(openai, file.id), text)
          const done = yield* ended(openai, (yield* create(openai, file.id)).id)
          assert.strictEqual(done.request_counts?.completed, 1)
        }
        const empty = yield* refusal(() =>
          openai.files.create({ purpose: "batch", file: new File(["\uFEFF"], "empty.jsonl") })
        )
        assert.deepInclude(empty, { status: 400, code: "2001" })
      })
    )

    it.effect("name every fault by its line, and then accepts nothing", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const before = (yield* read("/manage/v1/wallet")).json
        const file = yield* upload(openai, [
          chat("a"),
          { ...chat("a"), url: "/v1/responses" },
          chat("c", { stream: true }),
          chat("d", { max_tokens: 0 }),
          chat("e", { model: "gpt-4o" }),
          chat("f", { model: "gemini-2.5-pro" }),
          { ...chat("g"), method: "GET", extra: 1 },
          { custom_id: "", method: "POST", url: "/v1/chat/completions", body: 1 }
        ])
        const refused = yield* read("/v1/batches", json(batchOf(file.id)))
        assert.strictEqual(refused.status, 400)
        assert.strictEqual(refused.json.code, 2001)
        assert.deepStrictEqual(
          refused.json.errors.map(({ pointer }: { pointer: string }) => pointer),
          [
            "#/lines/2/url",
            "#/lines/2/custom_id",
            "#/lines/3/body/stream",
            "#/lines/4/body/max_tokens",
            "#/lines/5/body/model",
            "#/lines/6/body/model",
            "#/lines/7/extra",
            "#/lines/7/method",
            "#/lines/8/custom_id",
            "#/lines/8/body"
          ]
        )
        assert.deepStrictEqual((yield* read("/manage/v1/wallet")).json, before)
      })
    )

    it.effect("refuse files of other purposes, empty files and bodies that are not a form", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const refused = yield* refusal(() =>
          openai.files.create({ purpose: "assistants", file: fileOf([chat("a")]) })
        )
        assert.deepInclude(refused, { status: 400, code: "2001" })
        const empty = yield* refusal(() =>
          openai.files.create({ purpose: "batch", file: new File([""], "empty.jsonl") })
        )
        assert.deepInclude(empty, { status: 400, code: "2001" })
        const json = yield* call("/v1/files", { method: "POST", body: "{}" })
        assert.strictEqual(json.status, 415)
        const compressed = yield* call("/v1/files", {
          method: "POST",
          headers: {
            "content-encoding": "gzip",
            "content-type": "multipart/form-data; boundary=a"
          },
          body: "--a--"
        })
        assert.strictEqual(compressed.status, 415)
        const kept = yield* Effect.promise(() =>
          openai.files.list({ purpose: "batch", limit: 100 })
        )
        assert.notInclude(
          kept.data.map(({ filename }) => filename),
          "empty.jsonl"
        )
      })
    )

    it.effect("show files and batches only to their owner", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const stranger = yield* strangersOpenAi
        const file = yield* upload(openai, [chat("a")])
        const batch = yield* create(openai, file.id)
        const requests = [
          () => stranger.files.retrieve(file.id),
          () => stranger.files.content(file.id),
          () => stranger.files.delete(file.id),
          () => stranger.batches.retrieve(batch.id),
          () => stranger.batches.cancel(batch.id),
          () =>
            stranger.batches.create({
              input_file_id: file.id,
              endpoint: "/v1/chat/completions",
              completion_window: "24h"
            })
        ]
        for (const request of requests) {
          assert.deepInclude(yield* refusal(request), { status: 404, code: "2005" })
        }
        assert.lengthOf((yield* Effect.promise(() => stranger.batches.list())).data, 0)
        assert.lengthOf((yield* Effect.promise(() => stranger.files.list())).data, 0)
        yield* ended(openai, batch.id)
      })
    )

    it.effect(
      "return 424 if a batch cannot be read after its create, so that no client creates another",
      () =>
        Effect.gen(function* () {
          const openai = yield* client
          const file = yield* upload(openai, [chat("a")])
          const sql = yield* SqlClient
          yield* sql`ALTER TABLE vendor_batches RENAME TO hidden_batches`
          const made = yield* read("/v1/batches", json(batchOf(file.id)))
          yield* sql`ALTER TABLE hidden_batches RENAME TO vendor_batches`
          assert.deepInclude(made.json, { status: 424, code: 2017 })
          assert.strictEqual(made.headers.get("x-should-retry"), "false")
          const [, id = ""] = /\/v1\/batches\/(batch_\w+)$/u.exec(made.json.task.url) ?? []
          assert.strictEqual((yield* ended(openai, id)).status, "completed")
        })
    )

    it.effect("return the first response to a repeat, also below the vendor's path", () =>
      Effect.gen(function* () {
        const openai = yield* openAiAt("/vendors/openai/v1")
        const file = yield* upload(openai, [chat("a")])
        const headers = { "Idempotency-Key": "batch-1" }
        const body = {
          input_file_id: file.id,
          endpoint: "/v1/chat/completions",
          completion_window: "24h"
        } as const
        const create = Effect.promise(() => openai.batches.create(body, { headers }).withResponse())
        const first = yield* create
        yield* ended(openai, first.data.id)
        // Its file may have been deleted
        yield* Effect.promise(() => openai.files.delete(file.id))
        const { data, response } = yield* create
        assert.deepStrictEqual(data, first.data)
        assert.strictEqual(response.headers.get("idempotency-replayed"), "true")
        const cost = "x-service-cost"
        assert.strictEqual(response.headers.get(cost), first.response.headers.get(cost))
        const other = yield* refusal(() =>
          openai.batches.create({ ...body, metadata: { a: "b" } }, { headers })
        )
        assert.deepInclude(other, { status: 422, code: "2008" })
      })
    )
  }
)

liveLayer(runningGateway({ FILE_BYTES_PER_USER: "200000" }))("the file quota", (it) => {
  it.effect("does not count the form around a file, so a file that fills the quota is stored", () =>
    Effect.gen(function* () {
      const openai = yield* client
      const send = (bytes: number) =>
        openai.files.create({ purpose: "batch", file: new File(["x".repeat(bytes)], "x.jsonl") })
      const { id } = yield* Effect.promise(() => send(199_999))
      assert.deepInclude(yield* refusal(() => send(2)), { status: 429, code: "1202" })
      assert.strictEqual((yield* Effect.promise(() => send(1))).bytes, 1)
      assert.deepInclude(yield* refusal(() => send(1)), { status: 429, code: "1202" })
      yield* Effect.promise(() => openai.files.delete(id))
      assert.strictEqual((yield* Effect.promise(() => send(199_999))).bytes, 199_999)
    })
  )
})

liveLayer(gatewayAt("openai", { script: { default: [MockVendor.result("300 millis")] } }))(
  "a batch with a late vendor or faulty results",
  (it) => {
    it.effect("expires if it is late, and is charged for its results", () =>
      Effect.gen(function* () {
        const openai = yield* client
        const lines = ["a", "b", "expires 1", "fails 2", "expires 2"].map((id) => chat(id))
        const batch = yield* create(openai, (yield* upload(openai, lines)).id)
        const done = yield* ended(openai, batch.id)
        assert.strictEqual(done.status, "expired")
        assert.isNumber(done.expired_at)
        assert.deepStrictEqual(done.request_counts, { total: 5, completed: 2, failed: 1 })
        assert.lengthOf((yield* textOf(openai, done.output_file_id)).trim().split("\n"), 2)
        const receipts = yield* batchReceipts(batch.id)
        assert.sameMembers(
          receipts.map((it) => `${it.custom_id} ${it.outcome}`),
          ["a settled", "b settled", "fails 2 released"]
        )
        const { json: task } = yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)
        assert.strictEqual(task.error.code, 4005)
        const sum = sumOf(receipts)
        assert.strictEqual(String(sum), yield* capturedOf(batch.id))
        assert.isAbove(Number(sum), 0)
        assert.strictEqual((yield* read("/manage/v1/wallet")).json.held_balance, "0.00")
      })
    )

    const runOf = (ids: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const openai = yield* client
        const batch = yield* create(
          openai,
          (yield* upload(
            openai,
            ids.map((id) => chat(id))
          )).id
        )
        const done = yield* ended(openai, batch.id)
        assert.strictEqual(done.status, "completed")
        const receipts = yield* batchReceipts(batch.id)
        const sum = sumOf(receipts)
        assert.strictEqual(String(sum), yield* capturedOf(batch.id))
        assert.strictEqual((yield* read("/manage/v1/wallet")).json.held_balance, "0.00")
        const text = yield* textOf(openai, done.output_file_id)
        return { receipts, lines: text.trim().split("\n") }
      })

    /** The sum of a counter over the series with this label. Other files in this worker also count. */
    const counterOf = (name: string, label: string) =>
      Effect.map(metricsText, (text) =>
        text
          .split("\n")
          .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
          .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)
      )

    it.effect(
      "is charged neither for a result of an unknown request nor for a second result of a request",
      () =>
        Effect.gen(function* () {
          const counted = Effect.forEach(["unknown", "repeated"], (fault) =>
            counterOf("gateway_batch_result_faults_total", `fault="${fault}"`)
          )
          const before = yield* counted
          const { lines, receipts } = yield* runOf(["a", "repeats", "invents"])
          // As the vendor wrote them
          assert.lengthOf(lines, 5)
          assert.sameMembers(
            receipts.map(({ custom_id: id, outcome }) => `${id} ${outcome}`),
            ["a settled", "repeats settled", "invents settled"]
          )
          assert.deepStrictEqual(
            yield* counted,
            before.map((count) => count + 1)
          )
        })
    )

    it.effect("counts the tokens of a result itself if the vendor's figures are impossible", () =>
      Effect.gen(function* () {
        const claims = ["-5", "0.5", "1e300", "2000000000"]
        const faults = counterOf("gateway_upstream_usage_faults_total", "account=")
        const before = yield* faults
        const { lines, receipts } = yield* runOf(claims.map((it) => `claims ${it}`))
        for (const claim of claims) {
          const id = `claims ${claim}`
          const receipt = receipts.find((it) => it.custom_id === id)
          const line = lines.find((it) => JSON.parse(it).custom_id === id) ?? ""
          assert.deepStrictEqual(
            receipt?.usage,
            {
              inputTokens: Math.ceil(JSON.stringify(chat(id).body).length / 4),
              outputTokens: Math.ceil(line.length / 4),
              counted: true
            },
            claim
          )
          // As for a call, at most the hold of the request: 50 tokens of output
          const tokens = Math.ceil(JSON.stringify(chat(id).body).length / 4) + 100
          assert.isAtMost(Number(micro(receipt?.cost ?? "")), tokens * 30)
        }
        assert.strictEqual(yield* faults, before + claims.length)
      })
    )
  }
)

liveLayer(
  gatewayAt("openai", {
    script: { default: [MockVendor.result("1 second"), MockVendor.result("1 minute")] }
  })
)("a batch at the vendor", (it) => {
  it.effect("is charged the sum of its receipts once, at half the price", () =>
    Effect.gen(function* () {
      const openai = yield* client
      const vendor = yield* Vendor
      const lines = Array.from({ length: 120 }, (_, n) =>
        chat(n % 40 === 7 ? `fails ${n}` : `r${n}`)
      )
      const file = yield* upload(openai, lines)
      const { data: batch, response } = yield* Effect.promise(() =>
        openai.batches
          .create({
            input_file_id: file.id,
            endpoint: "/v1/chat/completions",
            completion_window: "24h"
          })
          .withResponse()
      )
      const held = response.headers.get("x-service-cost") ?? ""
      const done = yield* ended(openai, batch.id)
      assert.strictEqual(done.status, "completed")
      assert.deepStrictEqual(done.request_counts, { total: 120, completed: 117, failed: 3 })
      const output = (yield* textOf(openai, done.output_file_id)).trim().split("\n")
      const errors = (yield* textOf(openai, done.error_file_id)).trim().split("\n")
      assert.strictEqual(output.length, 117)
      assert.strictEqual(errors.length, 3)

      const receipts = yield* batchReceipts(batch.id)
      assert.strictEqual(receipts.length, 120)
      assert.strictEqual(receipts.filter(({ outcome }) => outcome === "released").length, 3)
      const { json: task } = yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)
      const capture = task.entries.find((it: { kind: string }) => it.kind === "capture")
      const sum = sumOf(receipts)
      assert.strictEqual(String(sum), yield* capturedOf(batch.id))
      assert.isAbove(Number(sum), 0)
      assert.isTrue(capture !== undefined)
      assert.strictEqual(task.receipt.held, "0.00")
      assert.isAtLeast(Number(held) * 1_000_000, Number(sum))

      // Half of what the same calls cost
      const usage = output.map((line) => JSON.parse(line).response.body.usage)
      const expected = usage.reduce(
        (total: bigint, { completion_tokens: out, prompt_tokens: input }) =>
          total + (BigInt(input) * 7_500_000n + BigInt(out) * 30_000_000n + 999_999n) / 1_000_000n,
        0n
      )
      assert.strictEqual(sum, expected)

      // The file was sent once, and the batch names our task
      const sent = vendor.requests.filter(({ method }) => method === "POST")
      assert.deepStrictEqual(
        sent.map(({ path }) => path),
        ["/v1/files", "/v1/batches"]
      )
      assert.deepInclude(sent[1]?.json as object, {
        metadata: { gateway_task: taskIdOf(batch.id) }
      })
      assert.strictEqual(
        done.usage?.total_tokens,
        usage.reduce((all, it) => all + it.total_tokens, 0)
      )
    })
  )

  it.effect("is cancelled there, and charged for its results", () =>
    Effect.gen(function* () {
      const openai = yield* client
      const file = yield* upload(
        openai,
        Array.from({ length: 10 }, (_, n) => chat(`c${n}`))
      )
      const batch = yield* create(openai, file.id)
      yield* polled(
        () => openai.batches.retrieve(batch.id),
        ({ status }) => status === "in_progress"
      )
      const cancelling = yield* Effect.promise(() => openai.batches.cancel(batch.id))
      assert.strictEqual(cancelling.status, "cancelling")
      const done = yield* ended(openai, batch.id)
      assert.strictEqual(done.status, "cancelled")
      const receipts = yield* batchReceipts(batch.id)
      assert.strictEqual(receipts.length, 5)
      const { json: task } = yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)
      assert.strictEqual(task.error.code, 4004)
      const sum = sumOf(receipts)
      assert.strictEqual(String(sum), yield* capturedOf(batch.id))
      assert.strictEqual((yield* textOf(openai, done.output_file_id)).trim().split("\n").length, 5)
      const again = yield* refusal(() => openai.batches.cancel(batch.id))
      assert.deepInclude(again, { status: 409, code: "2010" })
    })
  )

  it.effect("is found in the vendor's list when the response to its submit was lost", () =>
    Effect.gen(function* () {
      const openai = yield* client
      const vendor = yield* Vendor
      const before = vendor.sold
      vendor.failNext(MockVendor.refused("AMBIGUOUS", "the connection broke"))
      const file = yield* upload(openai, [chat("lost")])
      const batch = yield* create(openai, file.id)
      yield* polled(
        () => openai.batches.retrieve(batch.id),
        ({ status }) => status === "in_progress"
      )
      assert.strictEqual(vendor.sold, before + 1)
      const { json: task } = yield* read(`/manage/v1/tasks/${taskIdOf(batch.id)}`)
      assert.deepStrictEqual(
        task.attempts.map((it: { state: string }) => it.state),
        ["submitted"]
      )
      yield* Effect.promise(() => openai.batches.cancel(batch.id))
      assert.strictEqual((yield* ended(openai, batch.id)).status, "cancelled")
    })
  )
})
