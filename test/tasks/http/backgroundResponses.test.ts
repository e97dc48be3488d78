import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type OpenAI from "openai"
import type { Response, ResponseStreamEvent } from "openai/resources/responses/responses"
import { MockVendor } from "../../../src/testing/index.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { openAiAt, refusal, strangersOpenAi } from "../../support/openAiClient.ts"
import { polled, read, runningGateway } from "../../support/running.ts"
import { gatewayAt, taskIdOf, Vendor } from "../../support/vendorBatches.ts"

const clientOf = (base: string) => Effect.map(openAiAt(base), ({ responses }) => responses)
const client = clientOf("/v1")

const strangersClient = Effect.map(strangersOpenAi, ({ responses }) => responses)

const isOver = ({ status }: Response) => status !== "queued" && status !== "in_progress"

const ended = (responses: OpenAI["responses"], id: string) =>
  polled(() => responses.retrieve(id), isOver)

const eventsOf = (stream: AsyncIterable<ResponseStreamEvent>) =>
  Effect.promise(async () => {
    const events: Array<ResponseStreamEvent> = []
    for await (const event of stream) events.push(event)
    return events
  })

const textOf = (response: Response) => response.output_text
/** docs/reference/background.md */
liveLayer(runningGateway({ SIMULATOR_DELAY: "200 millis" }))(
  "a background response in the sandbox",
  (it) => {
    it.effect(
      "is answered at once, runs as a task, and is charged once however often it is read",
      () =>
        Effect.gen(function* () {
          const responses = yield* client
          const asked = {
            model: "gpt-4o-mini",
            // Long enough to cost many cents
            input: "Hello ".repeat(60_000),
            background: true,
            max_output_tokens: 100,
            metadata: { order: "17" }
          }
          const { data: created, response } = yield* Effect.promise(() =>
            responses.create(asked).withResponse()
          )
          assert.match(created.id, /^resp_[0-9a-f]{32}$/u)
          assert.deepInclude<object>(created, {
            object: "response",
            status: "queued",
            background: true,
            model: "gpt-4o-mini",
            max_output_tokens: 100,
            metadata: { order: "17" },
            output: [],
            usage: null,
            error: null
          })
          assert.strictEqual(response.headers.get("x-service-sandbox"), "true")
          assert.strictEqual(response.headers.get("openai-poll-after-ms"), "2000")
          const done = yield* ended(responses, created.id)
          assert.strictEqual(done.status, "completed")
          assert.strictEqual(done.id, created.id)
          assert.match(textOf(done), /simulator/u)
          const again = yield* Effect.promise(() => responses.retrieve(created.id))
          assert.deepStrictEqual(again, done)

          const task = (yield* read(`/manage/v1/tasks/${taskIdOf(created.id)}`)).json
          assert.deepInclude(task, {
            vendor: "openai",
            model: "gpt-4o-mini",
            action: "responses",
            result_kind: "responses",
            status: "completed",
            metadata: { order: "17" }
          })
          const { input_tokens: input, output_tokens: output } = done.usage!
          // 0.15 and 0.60 dollars per million
          const micro = Math.ceil((input * 15_000_000 + output * 60_000_000) / 1_000_000)
          const captures = task.entries.filter((it: { kind: string }) => it.kind === "capture")
          assert.deepStrictEqual(
            captures.map(({ amount }: { amount: string }) =>
              Math.abs(Math.round(Number(amount) * 1e6))
            ),
            [Math.ceil(micro / 10_000) * 10_000]
          )
          const { json: usage } = yield* read("/manage/v1/usage?group_by=model")
          const row = usage.data.find((it: { model: string }) => it.model === "gpt-4o-mini")
          assert.strictEqual(row.tasks, 1)
          assert.strictEqual(row.units.input_tokens, input)
          assert.strictEqual(row.units.output_tokens, output)
          assert.match(task.result[0], /\/artifacts\/art_/u)
        })
    )

    it.effect(
      "streams its events from the create or from any event on, if it was created as a stream",
      () =>
        Effect.gen(function* () {
          const responses = yield* client
          const stream = yield* Effect.promise(() =>
            responses.create({ model: "gpt-4o-mini", input: "Hi", background: true, stream: true })
          )
          const events = yield* eventsOf(stream)
          const numbers = events.map(({ sequence_number: number }) => number)
          assert.deepStrictEqual(numbers, Array.from(events.keys()))
          const last = events.at(-1)!
          assert.strictEqual(last.type, "response.completed")
          const id = last.type === "response.completed" ? last.response.id : ""
          assert.match(id, /^resp_[0-9a-f]{32}$/u)
          const rest = yield* Effect.promise(() =>
            responses.retrieve(id, { stream: true, starting_after: 3 })
          )
          assert.deepStrictEqual(yield* eventsOf(rest), events.slice(4))
          const done = yield* ended(responses, id)
          assert.strictEqual(done.status, "completed")
          const plain = yield* Effect.promise(() =>
            responses.create({ model: "gpt-4o-mini", input: "Hi", background: true })
          )
          assert.deepInclude(yield* refusal(() => responses.retrieve(plain.id, { stream: true })), {
            status: 400,
            code: "2001"
          })
          const sql = yield* SqlClient.SqlClient
          // As `BODY_RETENTION` does
          yield* sql`UPDATE tasks SET body = 'null' WHERE id = ${taskIdOf(id)}`
          const deleted = yield* refusal(() => responses.retrieve(id, { stream: true }))
          assert.match(JSON.stringify(deleted), /has been deleted/u)
        })
    )

    it.effect("has no event after its last one, and none after a number that no event has", () =>
      Effect.gen(function* () {
        const responses = yield* client
        const after = (id: string, number: number) =>
          Effect.flatMap(
            Effect.promise(() => responses.retrieve(id, { stream: true, starting_after: number })),
            eventsOf
          )
        for (const [input, type] of [
          ["Hi", "response.completed"],
          ["[[sim:fail]]", "response.failed"]
        ] as const) {
          const stream = yield* Effect.promise(() =>
            responses.create({ model: "gpt-4o-mini", input, background: true, stream: true })
          )
          const events = yield* eventsOf(stream)
          const last = events.at(-1)!
          assert.strictEqual(last.type, type)
          const { id } = (last as { response: Response }).response
          const { sequence_number: number } = last
          assert.deepStrictEqual(yield* after(id, number - 1), [last])
          assert.deepStrictEqual(yield* after(id, number), [])
          assert.deepStrictEqual(yield* after(id, number + 1000), [])
        }
        // Waits for later events while the response runs
        const { id } = yield* Effect.promise(() =>
          responses.create({
            model: "gpt-4o-mini",
            input: "[[sim:slow=2s]]",
            background: true,
            stream: true
          })
        ).pipe(
          Effect.flatMap((stream) =>
            Effect.promise(async () => {
              for await (const event of stream) {
                if (event.type === "response.created") return event.response
              }
              throw new Error("no event")
            })
          )
        )
        assert.deepStrictEqual(yield* after(id, 1000), [])
        assert.strictEqual(
          (yield* Effect.promise(() => responses.retrieve(id))).status,
          "completed"
        )
      })
    )

    it.effect("can be cancelled twice, and shows a failure as OpenAI does", () =>
      Effect.gen(function* () {
        const responses = yield* client
        const slow = yield* Effect.promise(() =>
          responses.create({ model: "gpt-4o-mini", input: "[[sim:slow=60]]", background: true })
        )
        const cancelled = yield* Effect.promise(() => responses.cancel(slow.id))
        assert.strictEqual(cancelled.status, "cancelled")
        assert.strictEqual(
          (yield* Effect.promise(() => responses.cancel(slow.id))).status,
          "cancelled"
        )
        const failing = yield* Effect.promise(() =>
          responses.create({ model: "gpt-4o-mini", input: "[[sim:fail]]", background: true })
        )
        const failed = yield* ended(responses, failing.id)
        assert.strictEqual(failed.status, "failed")
        assert.strictEqual(failed.error?.code, "server_error")
        assert.deepInclude(yield* refusal(() => responses.cancel(failing.id)), {
          status: 409,
          code: "2010"
        })
      })
    )

    it.effect(
      "is not found under an unknown id, and is refused with fields that cannot be kept",
      () =>
        Effect.gen(function* () {
          const responses = yield* client
          const unknown = `resp_${"0".repeat(12)}7${"0".repeat(3)}8${"0".repeat(15)}`
          for (const id of [unknown, "resp_x"]) {
            assert.deepInclude(yield* refusal(() => responses.retrieve(id)), {
              status: 404,
              code: "2005"
            })
            assert.deepInclude(yield* refusal(() => responses.cancel(id)), {
              status: 404,
              code: "2005"
            })
            assert.deepInclude(
              yield* refusal(() =>
                responses.create({ model: "gpt-4o-mini", input: "a", previous_response_id: id })
              ),
              { status: 400, code: "2001" }
            )
          }
          const faults = [
            { metadata: { a: "b".repeat(513) } },
            { instructions: "a".repeat(1024 * 1024 + 1) },
            { instructions: "a".repeat(5 * 1024 * 1024) },
            { conversation: "conv_1" },
            { service_tier: "priority" as const }
          ]
          for (const fault of faults) {
            assert.deepInclude(
              yield* refusal(() =>
                responses.create({ model: "gpt-4o-mini", input: "a", background: true, ...fault })
              ),
              { status: 400, code: "2001" }
            )
          }
        })
    )
  }
)

liveLayer(
  gatewayAt("openai", {
    script: {
      "gpt-4o": [MockVendor.result("1 minute")],
      "gpt-4.1": [MockVendor.jobFails("FAILED", "The engine broke", 0)],
      default: [MockVendor.result(0)]
    },
    answer: () => "A lighthouse"
  })
)("a background response at OpenAI", (it) => {
  it.effect("is continued under the gateway's ids, in the background or not", () =>
    Effect.gen(function* () {
      const { requests } = yield* Vendor
      const responses = yield* client
      const direct = yield* clientOf("/vendors/openai/v1")
      const first = yield* Effect.promise(() =>
        direct.create({ model: "gpt-4o-mini", input: "Where?", background: true })
      )
      const done = yield* ended(direct, first.id)
      assert.strictEqual(textOf(done), "A lighthouse")
      const second = yield* Effect.promise(() =>
        responses.create({
          model: "gpt-4o-mini",
          input: "And then?",
          background: true,
          previous_response_id: first.id
        })
      )
      assert.strictEqual(second.previous_response_id, first.id)
      const next = yield* ended(responses, second.id)
      assert.strictEqual(next.previous_response_id, first.id)
      const submits = requests.filter(
        ({ method, path }) => method === "POST" && path === "/v1/responses"
      )
      const sent = submits.map(({ json }) => json as Record<string, string>)
      assert.lengthOf(sent, 2)
      assert.match(sent[1]!["previous_response_id"]!, /^resp_.{36}$/u)
      assert.notStrictEqual(sent[1]!["previous_response_id"], first.id)

      const third = yield* Effect.promise(() =>
        responses.create({ model: "gpt-4o-mini", input: "Now", previous_response_id: second.id })
      )
      assert.strictEqual(textOf(third), "A lighthouse")
      const whole = requests.at(-1)!.json as Record<string, string>
      assert.match(whole["previous_response_id"]!, /^resp_.{36}$/u)
      assert.notStrictEqual(whole["previous_response_id"], second.id)

      const asked = { model: "gpt-4o-mini", input: "Now", previous_response_id: second.id }
      const { input_tokens } = yield* Effect.promise(() => responses.inputTokens.count(asked))
      assert.isAbove(input_tokens, 0)
      const counted = requests.at(-1)!
      assert.strictEqual(counted.path, "/v1/responses/input_tokens")
      assert.deepInclude(counted.json, { previous_response_id: whole["previous_response_id"] })
    })
  )

  it.effect("is not found by another user, who cannot continue it either", () =>
    Effect.gen(function* () {
      const owner = yield* client
      const asked = { model: "gpt-4o-mini", input: "Mine", background: true }
      const { id } = yield* Effect.promise(() => owner.create(asked))
      yield* ended(owner, id)
      const other = yield* strangersClient
      for (const request of [() => other.retrieve(id), () => other.cancel(id)]) {
        assert.deepInclude(yield* refusal(request), { status: 404, code: "2005" })
      }
      const vendor = yield* Vendor
      const before = vendor.sold
      for (const background of [true, false]) {
        const continued = { ...asked, background, previous_response_id: id }
        assert.deepInclude(yield* refusal(() => other.create(continued)), {
          status: 400,
          code: "2001"
        })
      }
      const counted = { model: asked.model, previous_response_id: id }
      assert.deepInclude(yield* refusal(() => other.inputTokens.count(counted)), {
        status: 400,
        code: "2001"
      })
      assert.strictEqual(vendor.sold, before)
    })
  )

  it.effect("is created once for the same Idempotency-Key", () =>
    Effect.gen(function* () {
      const responses = yield* client
      const vendor = yield* Vendor
      const before = vendor.sold
      const asked = { model: "gpt-4o-mini", input: "Once", background: true }
      const headers = { "idempotency-key": "a" }
      const [one, two] = yield* Effect.promise(() =>
        Promise.all([responses.create(asked, { headers }), responses.create(asked, { headers })])
      )
      assert.deepStrictEqual(one, two)
      yield* ended(responses, one.id)
      assert.strictEqual(vendor.sold, before + 1)
    })
  )

  it.effect("has an hour more than its completion window", () =>
    Effect.gen(function* () {
      const responses = yield* client
      const sql = yield* SqlClient.SqlClient
      const asked = { model: "gpt-4o", input: "Later", background: true }
      const minutesOf = Effect.fnUntraced(function* (
        options?: OpenAI.Responses.ResponseCreateParams["background_options"]
      ) {
        const { id } = yield* Effect.promise(() =>
          responses.create(
            options === undefined ? asked : { ...asked, background_options: options }
          )
        )
        const [row] = yield* sql`
          SELECT round(extract(epoch FROM r.deadline_at - t.created_at) / 60)::int AS minutes
          FROM runs r JOIN tasks t ON t.id = r.task_id WHERE t.id = ${taskIdOf(id)}`
        return row?.["minutes"]
      })
      assert.strictEqual(yield* minutesOf(), 60)
      assert.strictEqual(yield* minutesOf({ completion_window: "soonest" }), 60)
      assert.strictEqual(yield* minutesOf({ completion_window: "2h" }), 180)
      assert.strictEqual(yield* minutesOf({ completion_window: "8h" }), 540)
    })
  )

  it.effect("is streamed from the vendor with the gateway's ids", () =>
    Effect.gen(function* () {
      const responses = yield* client
      const stream = yield* Effect.promise(() =>
        responses.create({ model: "gpt-4o-mini", input: "Hi", background: true, stream: true })
      )
      const events = yield* eventsOf(stream)
      const ids = new Set(events.flatMap((it) => ("response" in it ? [it.response.id] : [])))
      assert.lengthOf([...ids], 1)
      const [id = ""] = ids
      assert.match(id, /^resp_[0-9a-f]{32}$/u)
      assert.strictEqual((yield* ended(responses, id)).status, "completed")
    })
  )

  it.effect("costs what it has used when it is cancelled", () =>
    Effect.gen(function* () {
      const responses = yield* client
      const vendor = yield* Vendor
      const before = vendor.sold
      const slow = yield* Effect.promise(() =>
        responses.create({ model: "gpt-4o", input: "a".repeat(400), background: true })
      )
      const begun = yield* Effect.promise(() => responses.retrieve(slow.id)).pipe(
        Effect.repeat({ until: () => vendor.sold > before, times: 1000 })
      )
      assert.include(["queued", "in_progress"], begun.status)
      const cancelled = yield* Effect.promise(() => responses.cancel(slow.id))
      assert.strictEqual(cancelled.status, "cancelled")
      const task = (yield* read(`/manage/v1/tasks/${taskIdOf(slow.id)}`)).json
      assert.deepInclude(task, { status: "failed" })
      assert.strictEqual(task.error.code, 4004)
      const entries: ReadonlyArray<{ kind: string; amount: string }> = task.entries
      assert.deepStrictEqual(
        entries.map(({ kind }) => kind),
        ["hold", "capture", "release"]
      )
    })
  )

  it.effect("costs nothing when it fails", () =>
    Effect.gen(function* () {
      const responses = yield* client
      const created = yield* Effect.promise(() =>
        responses.create({ model: "gpt-4.1", input: "a", background: true })
      )
      const failed = yield* ended(responses, created.id)
      assert.deepStrictEqual([failed.status, failed.error], [
        "failed",
        { code: "server_error", message: "The engine broke" }
      ] as never)
      const task = (yield* read(`/manage/v1/tasks/${taskIdOf(created.id)}`)).json
      assert.strictEqual(task.receipt.captured, "0.00")
    })
  )
})
