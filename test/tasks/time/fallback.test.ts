import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { writeFileSync } from "node:fs"
import { WebhookSenderLog } from "../../../src/webhooks/WebhookSender.ts"
import { aliasCatalog, aliasPath, catalogFile, scriptedVendor } from "../../support/aliases.ts"
import type { Outcome } from "../../support/aliases.ts"
import { advance, eventually, layerGateway, makeUser, operator } from "../../support/gateway.ts"

const names = ["max", "flux", "pro"] as const
const prices: Readonly<Record<string, string>> = { max: "7.50", flux: "3.00", pro: "12.00" }
const shown: Readonly<Record<string, string>> = {
  max: "alibaba/text-to-image-max",
  flux: "fal/flux",
  pro: "fal/pro"
}

const transient: ReadonlyArray<Outcome> = ["RETRYABLE", "RATE_LIMITED"]
const last: ReadonlyArray<Outcome> = [
  "ok",
  "fails",
  "CONTENT",
  "FATAL_CLIENT",
  "MEDIA",
  "AMBIGUOUS",
  "TIMEOUT"
]

/** Every history of three models up to the response that decides it, and those in which all are busy. */
const histories: ReadonlyArray<ReadonlyArray<Outcome>> = [
  ...last.map((it) => [it]),
  ...transient.flatMap((a) => last.map((it) => [a, it])),
  ...transient.flatMap((a) =>
    transient.flatMap((b) => [...last, ...transient].map((it) => [a, b, it]))
  )
]

const promptOf = (history: ReadonlyArray<Outcome>) =>
  history.map((outcome, n) => `${names[n]}=${outcome}`).join(" ")

const create = (user: Effect.Success<ReturnType<typeof makeUser>>, prompt: string, more = {}) =>
  user.call("POST", aliasPath, { prompt, ...more })

/** The timeline after the end; results are stored in real time. */
const timelineOf = (user: Effect.Success<ReturnType<typeof makeUser>>, id: string) =>
  Effect.map(
    eventually(user.call("GET", `/manage/v1/tasks/${id}`), ({ json }) => json.ended_at !== null),
    ({ json }) => json
  )

describe("the task of an alias", () => {
  const env = { CATALOG_FILE: catalogFile(aliasCatalog) }

  it.effect(
    "is bought at most once, held at the highest price and settled at the winner's, in every history",
    () => {
      const { submits, vendor } = scriptedVendor()
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser({ credits: 10_000 })
        const ids: Array<string> = []
        for (const history of histories) {
          const { headers, json, status, text } = yield* create(user, promptOf(history))
          assert.strictEqual(status, 202, text)
          assert.strictEqual(headers.get("x-service-cost"), "12.00")
          ids.push(json.task_info.id)
        }
        yield* advance("90 seconds")
        let spent = 0
        for (const [n, history] of histories.entries()) {
          const own = submits.filter(({ taskId }) => taskId === ids[n])
          const what = promptOf(history)
          const winner = names[history.length - 1]!
          const isBought = history.at(-1) === "ok"
          // In order, each model once; only the last one again
          assert.deepStrictEqual(
            [...new Set(own.map(({ model }) => model))],
            names.slice(0, history.length),
            what
          )
          assert.isAtMost(
            own.filter(({ outcome }) => ["ok", "fails"].includes(outcome)).length,
            1,
            what
          )
          const doubtful = own.findIndex(
            ({ outcome }) => !transient.includes(outcome) && outcome !== "MEDIA"
          )
          assert.isTrue(doubtful < 0 || doubtful === own.length - 1, what)
          const body = yield* timelineOf(user, ids[n]!)
          const { headers } = yield* user.call("GET", `${aliasPath}/${ids[n]}`)
          assert.strictEqual(body.status, isBought ? "completed" : "failed", what)
          assert.strictEqual(`${body.vendor}/${body.model}`, "alibaba/fast-image")
          const { captured, held, model, released, skipped, vendor } = body.receipt
          assert.strictEqual(`${vendor}/${model}`, shown[winner], what)
          assert.strictEqual(captured, isBought ? prices[winner] : "0.00", what)
          assert.deepStrictEqual([held, Number(captured) + Number(released)], ["0.00", 12], what)
          const passed = history.slice(0, -1)
          assert.deepStrictEqual(
            skipped.map((it: { reason: string }) => it.reason),
            passed.map((it) => (it === "RETRYABLE" ? "unavailable" : "rate_limited")),
            what
          )
          assert.strictEqual(headers.get("x-service-model"), shown[winner])
          assert.strictEqual(
            headers.get("x-service-skipped"),
            passed.length === 0
              ? null
              : skipped
                  .map(
                    (it: { vendor: string; model: string; reason: string }) =>
                      `"${it.vendor}/${it.model}";reason=${it.reason}`
                  )
                  .join(", ")
          )
          spent += Number(captured)
        }
        const after = (yield* user.call("GET", "/manage/v1/wallet")).json
        assert.strictEqual(after.held_balance, "0.00")
        assert.strictEqual(Number(after.settled_balance), 10_000 - spent)
        const [sum] = yield* sql<{ total: string; held: string; holds: string }>`
          SELECT (SELECT sum(CASE kind WHEN 'capture' THEN -amount WHEN 'top_up' THEN amount ELSE 0 END)
            FROM wallet_entries WHERE user_id = ${user.id})::text AS total,
            (SELECT string_agg(DISTINCT amount::text, ',') FROM wallet_entries
              WHERE user_id = ${user.id} AND kind = 'hold') AS held,
            (SELECT count(*) FROM holds WHERE user_id = ${user.id})::text AS holds`
        assert.strictEqual(Number(sum!.total) / 1e6, Number(after.settled_balance))
        assert.deepStrictEqual([sum!.held, sum!.holds], ["12000000", "0"])
        // Usage counts the models that made the results
        const usage = (yield* user.call("GET", "/manage/v1/usage?group_by=model")).json.data
        assert.deepStrictEqual(usage.map((it: { model: string }) => it.model).toSorted(), [
          "flux",
          "pro",
          "text-to-image-max"
        ])
      }).pipe(Effect.provide(layerGateway({ vendor, env })))
    }
  )

  for (const [outcome, reason] of [
    ["OPERATOR", "account_refused"],
    ["GONE", "model_gone"]
  ] as const) {
    it.effect(
      `skips a model after ${outcome}, and the next task skips it before any submit`,
      () => {
        const { submits, vendor } = scriptedVendor()
        return Effect.gen(function* () {
          const user = yield* makeUser()
          const first = yield* create(user, `max=${outcome}`)
          yield* advance("5 seconds")
          const second = yield* create(user, `max=${outcome}`)
          assert.strictEqual(second.status, 202, second.text)
          yield* advance("5 seconds")
          assert.deepStrictEqual(
            submits.map(({ model }) => model),
            ["max", "flux", "flux"]
          )
          const [one, two] = [
            yield* timelineOf(user, first.json.task_info.id),
            yield* timelineOf(user, second.json.task_info.id)
          ]
          assert.deepStrictEqual(
            [one.candidates[0].skipped.reason, one.candidates[0].skipped.attempt],
            [reason, 1]
          )
          assert.deepStrictEqual(
            [two.candidates[0].skipped.reason, two.candidates[0].skipped.attempt],
            ["account_refused", null]
          )
          assert.deepStrictEqual([one.status, two.status], ["completed", "completed"])
          assert.deepStrictEqual(
            two.attempts.map((it: { n: number; vendor: string }) => [it.n, it.vendor]),
            [[1, "fal"]]
          )
        }).pipe(Effect.provide(layerGateway({ vendor, env })))
      }
    )
  }

  it.effect("does not try the next model after a job that failed because of the account", () => {
    const { submits, vendor } = scriptedVendor()
    return Effect.gen(function* () {
      const user = yield* makeUser()
      const created = yield* create(user, "max=OPERATOR_OF_JOB")
      yield* advance("5 seconds")
      const task = yield* timelineOf(user, created.json.task_info.id)
      assert.deepStrictEqual([submits.length, task.status, task.error.code], [1, "failed", 4008])
    }).pipe(Effect.provide(layerGateway({ vendor, env })))
  })

  it.effect("keeps its models through a reload, and its last event names the winner", () => {
    const { polls, submits, vendor } = scriptedVendor()
    const file = catalogFile(aliasCatalog)
    return Effect.gen(function* () {
      const user = yield* makeUser()
      yield* user.call("POST", "/manage/v1/webhook-endpoints", {
        url: "https://hooks.example.com/x",
        events: ["task.created", "task.succeeded"]
      })
      const first = yield* create(user, "max=RATE_LIMITED")
      // Before the task's next step the alias has another order, and one model is gone
      const [alias] = aliasCatalog.aliases
      const aliases = [{ ...alias, to: [alias!.to[2], alias!.to[0]] }]
      writeFileSync(file, JSON.stringify({ ...aliasCatalog, add: [aliasCatalog.add[1]], aliases }))
      const reload = yield* operator("POST", "/manage/v1/catalog/reload")
      assert.strictEqual(reload.status, 200, reload.text)
      assert.deepStrictEqual(
        reload.json.difference.changed.map((it: { type: string; id: string }) => [it.type, it.id]),
        [["alias", "alibaba/fast-image"]]
      )
      yield* advance("5 seconds")
      assert.deepStrictEqual(
        submits.map(({ model }) => model),
        ["max", "flux"]
      )
      assert.deepStrictEqual(polls, ["flux"])
      const { id } = first.json.task_info
      yield* timelineOf(user, id)
      const get = yield* user.call("GET", `${aliasPath}/${id}`)
      assert.deepStrictEqual([get.status, get.json.task_info.status], [200, "completed"])
      assert.strictEqual(get.headers.get("x-service-cost"), "3.00")
      yield* advance("5 seconds")
      const log = yield* WebhookSenderLog
      const events = (yield* eventually(log.sent, ({ length }) => length > 1)).map(({ request }) =>
        JSON.parse(Buffer.from(request.body).toString())
      )
      assert.deepStrictEqual(
        events.map(({ data, type }) => [type, data.vendor, data.model_name]),
        [
          ["task.created", "alibaba", "fast-image"],
          ["task.succeeded", "fal", "flux"]
        ]
      )
      assert.deepStrictEqual(events[1].data.payload, get.json)
      const list = (yield* user.call("GET", "/manage/v1/tasks?model=fast-image")).json.data
      assert.deepStrictEqual(
        list.map((it: { id: string }) => it.id),
        [id]
      )
    }).pipe(Effect.provide(layerGateway({ vendor, env: { CATALOG_FILE: file } })))
  })

  it.effect("is replayed with its first response", () => {
    const { vendor } = scriptedVendor()
    const file = catalogFile(aliasCatalog)
    return Effect.gen(function* () {
      const user = yield* makeUser()
      const key = { "idempotency-key": "one" }
      const body = { prompt: "max=RETRYABLE", seed: 1 }
      const first = yield* user.call("POST", aliasPath, body, key)
      yield* advance("5 seconds")
      const again = yield* user.call("POST", aliasPath, body, key)
      assert.deepStrictEqual([again.status, again.text], [202, first.text])
      assert.deepStrictEqual(
        ["x-service-cost", "x-service-balance", "idempotency-replayed"].map((it) =>
          again.headers.get(it)
        ),
        ["12.00", first.headers.get("x-service-balance"), "true"]
      )
      // Also if no model accepts the body any more; a key used with another body is refused whatever the body's faults
      const aliases = [{ alias: "fast-image", vendor: "alibaba", to: [{ model: "fal/flux" }] }]
      writeFileSync(file, JSON.stringify({ ...aliasCatalog, aliases }))
      yield* operator("POST", "/manage/v1/catalog/reload")
      const later = yield* user.call("POST", aliasPath, body, key)
      assert.deepStrictEqual([later.status, later.text], [202, first.text])
      const other = yield* user.call("POST", aliasPath, { ...body, seed: 2 }, key)
      assert.deepStrictEqual([other.status, other.json.code], [422, 2008])
    }).pipe(Effect.provide(layerGateway({ vendor, env: { CATALOG_FILE: file } })))
  })

  it.effect(
    "is submitted to the next model, as the next attempt, if its process died right after the fallback",
    () => {
      const { submits, vendor } = scriptedVendor()
      return Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        // The run's owner has no heartbeat, so the rescuer treats it as dead
        yield* sql`
        CREATE FUNCTION own_it() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.owner = 'proc_dead'; NEW.epoch = 7; RETURN NEW; END $$`
        yield* sql`CREATE TRIGGER own_it BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION own_it()`
        const created = yield* create(user, "max=RETRYABLE")
        const { id } = created.json.task_info
        yield* sql`UPDATE runs SET attempt = 1, queue = 'fal/flux/submits' WHERE task_id = ${id}`
        yield* sql`
        INSERT INTO vendor_attempts (task_id, n, vendor, account_id, body_hash, state, failure, started_at)
        VALUES (${id}, 1, 'alibaba', 'scripted', '\\x00', 'refused', 'RETRYABLE: busy', 'epoch')`
        yield* sql`
        UPDATE tasks SET status = 'processing', started_at = created_at, candidate = 1,
          candidates = jsonb_set(candidates, '{0,skipped}',
            '{"reason":"unavailable","at":"2026-01-01T00:00:00.000Z","attempt":1}')
        WHERE id = ${id}`
        yield* advance("20 seconds")
        assert.deepStrictEqual(
          submits.map(({ model }) => model),
          ["flux"]
        )
        const task = yield* timelineOf(user, id)
        assert.deepStrictEqual(
          [task.status, task.attempts.map((it: { n: number }) => it.n), task.receipt.captured],
          ["completed", [1, 2], "3.00"]
        )
      }).pipe(Effect.provide(layerGateway({ vendor, env })))
    }
  )
})
