import { assert, describe } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeEach } from "vitest"
import { fal } from "../../../src/testing/vendors/FalProtocol.ts"
import { adminToken } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { until } from "../../support/until.ts"
import { describedFal } from "../../support/upstreams/describedFal.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"
import type { Reply } from "../../support/upstreams/Upstream.ts"

/** docs/vendors-as-files.md: a vendor of jobs that a catalog file describes, behind the whole service. */

const folder = temporaryFolder("described")
const catalog = join(folder, "catalog.json")
const path = "/vendors/described-fal/v1/flux/generation"
const write = (file: unknown) => writeFileSync(catalog, JSON.stringify(file))
write({ vendors: [describedFal] })

const bodyOf = (answer: Response) =>
  Effect.promise(() => answer.json() as Promise<Record<string, never>>)

const operator = (method: string, at: string) =>
  Effect.flatMap(call(at, { method, headers: { authorization: `Bearer ${adminToken}` } }), bodyOf)

const upstream = await upstreamOfTests(Upstream.start(fal))

describe("a vendor of jobs described in a file", () => {
  beforeEach(() => {
    upstream.runningPolls = 0
    write({ vendors: [describedFal] })
  })
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({
        CATALOG_FILE: catalog,
        DESCRIBED_FAL_API_KEY: upstream.key,
        DESCRIBED_FAL_BASE_URL: upstream.url
      })
    )
  )

  liveLayer(gateway)((it) => {
    it.effect("is listed with its body and price, quoted, bought once and charged its hold", () =>
      Effect.gen(function* () {
        const listed = yield* Effect.flatMap(call("/manage/v1/models?limit=100"), bodyOf)
        const models = listed["data"] as unknown as ReadonlyArray<Record<string, unknown>>
        const model = models.find((it) => it["vendor"] === "described-fal")
        assert.strictEqual(model?.["path"], path)
        assert.deepStrictEqual(model?.["price"], {
          per: "expression",
          hold: "body.num_images * 3000000"
        })
        assert.strictEqual(model?.["sandbox"], false)
        const schema = model?.["body_schema"] as { properties: Record<string, unknown> }
        assert.sameMembers(Object.keys(schema.properties), [
          "prompt",
          "num_images",
          "metadata",
          "webhook"
        ])
        const quoted = yield* Effect.flatMap(
          call(`${path}?dry_run=true`, json({ prompt: "p", num_images: 2 })),
          bodyOf
        )
        assert.deepStrictEqual(quoted["quote"], { amount: "6.00", currency: "credits" })
        const task = yield* finishedTask(path, { prompt: "p", num_images: 2 })
        assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
        assert.strictEqual(task.images?.length, 2)
        assert.strictEqual(upstream.paidSubmits, 1)
        const [submit] = upstream.seen
        assert.deepStrictEqual(submit?.json, { prompt: "p", num_images: 2 })
        assert.strictEqual(submit?.headers["authorization"], `Key ${upstream.key}`)
        const shown = yield* call(`${path}/${task.task_info.id}`)
        assert.strictEqual(shown.headers.get("x-service-cost"), "6.00")
      })
    )

    it.effect("reports faults of a body with pointers, like other models", () =>
      Effect.gen(function* () {
        const answer = yield* call(
          path,
          json({ prompt: "", num_images: 9, seed: 1, metadata: { k: 1 } })
        )
        assert.strictEqual(answer.status, 400)
        const problem = yield* bodyOf(answer)
        const errors = problem["errors"] as unknown as ReadonlyArray<{ pointer: string }>
        assert.strictEqual(problem["code"], 2001)
        assert.sameMembers(
          errors.map(({ pointer }) => pointer),
          ["#/seed", "#/prompt", "#/num_images", "#/metadata/k"]
        )
        const storable = yield* call(path, json({ prompt: "a\u0000b" }))
        assert.strictEqual(storable.status, 400)
      })
    )

    it.effect("charges in proportion for some of several results", () =>
      Effect.gen(function* () {
        upstream.ending = "partial"
        const task = yield* finishedTask(path, { prompt: "p", num_images: 3 })
        assert.strictEqual(task.images?.length, 2)
        const shown = yield* call(`${path}/${task.task_info.id}`)
        assert.strictEqual(shown.headers.get("x-service-cost"), "6.00")
      })
    )

    it.effect("does not return more results than were ordered", () =>
      Effect.gen(function* () {
        upstream.ending = "surplus"
        const task = yield* finishedTask(path, { prompt: "p", num_images: 2 })
        assert.strictEqual(task.images?.length, 2)
      })
    )

    it.effect(
      "fails with 3004 without another submit after a refusal that the description does not explain",
      () =>
        Effect.gen(function* () {
          const unexplained: ReadonlyArray<Reply> = [
            { status: 409, json: { detail: "Conflict" } },
            { status: 500, json: { detail: "Internal server error" } },
            { status: 429, bytes: Buffer.from("<html>Too many requests</html>") },
            { status: 200, json: { detail: "accepted, but no id" } }
          ]
          for (const reply of unexplained) {
            upstream.reset()
            upstream.submitFaults = [reply]
            const task = yield* finishedTask(path, { prompt: "p" })
            assert.strictEqual(task.task_info.error?.code, 3004, JSON.stringify(task))
            const submits = upstream.seen.filter(({ method }) => method === "POST")
            assert.strictEqual(submits.length, 1)
          }
        })
    )

    it.effect(
      "submits again after a refusal that bought nothing according to the description",
      () =>
        Effect.gen(function* () {
          upstream.submitFaults = [{ status: 429, json: { detail: "Too many" } }, "unavailable"]
          const task = yield* finishedTask(path, { prompt: "p" })
          assert.strictEqual(task.task_info.status, "completed", JSON.stringify(task))
          assert.strictEqual(upstream.paidSubmits, 1)
        })
    )

    it.effect("sends the key to no other host that a response names", () =>
      Effect.gen(function* () {
        const other = yield* Effect.promise(() => Upstream.start(fal))
        const named = { request_id: "r1", status_url: `${other.url}/status` }
        upstream.submitFaults = [{ status: 200, json: named }]
        const task = yield* finishedTask(path, { prompt: "p" })
        assert.strictEqual(task.task_info.status, "failed", JSON.stringify(task))
        assert.strictEqual(other.requests, 0)
        yield* Effect.promise(() => other.close())
      })
    )

    it.effect("uses a corrected description for running jobs", () =>
      Effect.gen(function* () {
        const { jobs } = describedFal
        const wrong = { ...jobs, state: { ...jobs!.state, done: ["READY"] } }
        write({ vendors: [{ ...describedFal, jobs: wrong }] })
        yield* operator("POST", "/manage/v1/catalog/reload")
        const created = yield* Effect.flatMap(call(path, json({ prompt: "p" })), bodyOf)
        const { id } = created["task_info"] as unknown as { id: string }
        // The second poll shows that the answer to the first has not ended the task
        yield* Effect.promise(() =>
          until(() => upstream.seen.filter(({ method }) => method === "GET").length >= 2)
        )
        const waits = yield* Effect.flatMap(call(`${path}/${id}`), bodyOf)
        assert.notInclude(JSON.stringify(waits), "completed")
        write({ vendors: [describedFal] })
        const reloaded = yield* operator("POST", "/manage/v1/catalog/reload")
        assert.include(JSON.stringify(reloaded["difference"]), "#/jobs/state/done/0")
        const waited = yield* call(`${path}/${id}`, { headers: { prefer: "wait=20" } })
        assert.include(yield* Effect.promise(() => waited.text()), "completed")
        assert.strictEqual(upstream.paidSubmits, 1)
      })
    )

    it.effect("can leave the catalog: its tasks can be cancelled, and then cost nothing", () =>
      Effect.gen(function* () {
        upstream.reset()
        upstream.runningPolls = Infinity
        const created = yield* Effect.flatMap(call(path, json({ prompt: "p" })), bodyOf)
        const { id } = created["task_info"] as unknown as { id: string }
        yield* Effect.promise(() => until(() => upstream.paidSubmits === 1))
        const held = yield* Effect.flatMap(call("/manage/v1/wallet"), bodyOf)
        write({ vendors: [] })
        const reloaded = yield* operator("POST", "/manage/v1/catalog/reload")
        assert.strictEqual(reloaded["adopted"], true)
        const cancelled = yield* call(`${path}/${id}`, { method: "DELETE" })
        assert.strictEqual(cancelled.status, 200)
        assert.strictEqual(cancelled.headers.get("x-service-cost"), "0.00")
        assert.include(yield* Effect.promise(() => cancelled.text()), '"code":4004')
        const released = yield* Effect.flatMap(call("/manage/v1/wallet"), bodyOf)
        assert.deepStrictEqual(
          [held["held_balance"], released["held_balance"]],
          ["3.00", "0.00"],
          JSON.stringify(held)
        )
        write({ vendors: [describedFal] })
        yield* operator("POST", "/manage/v1/catalog/reload")
      })
    )

    it.effect(
      "is not changed by a description with faults, which are reported with their pointers",
      () =>
        Effect.gen(function* () {
          const { jobs } = describedFal
          const [model] = jobs!.models
          write({
            vendors: [
              {
                ...describedFal,
                jobs: {
                  ...jobs,
                  poll: { path: "/requests/{request}" },
                  failures: [{ status: 429, when: "message.matches('a+')", class: "RATE_LIMITED" }],
                  models: [
                    {
                      ...model,
                      body: {
                        ...model.body,
                        properties: { prompt: { type: "string", pattern: "(a+)+" } }
                      },
                      price: { per: "expression", hold: "body.num_images * 1.5" }
                    }
                  ]
                }
              }
            ]
          })
          const refused = yield* operator("POST", "/manage/v1/catalog/reload")
          const errors = refused["errors"] as unknown as ReadonlyArray<{ pointer: string }>
          assert.sameMembers(
            errors.map(({ pointer }) => pointer),
            [
              "#/vendors/0/jobs/failures/0/when",
              "#/vendors/0/jobs/models/0/body/properties/prompt/pattern",
              "#/vendors/0/jobs/models/0/price/hold"
            ]
          )
        })
    )
  })
})
