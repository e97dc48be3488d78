import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Schedule } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { builtInEntries } from "../../../src/catalog/BuiltInModels.ts"
import {
  bodyOf,
  catalogOfFamilies,
  families,
  pathOf,
  startUpstreams,
  vendorEnv
} from "../../support/families.ts"
import type { Family, Upstreams } from "../../support/families.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { call, finishedTask, json, metricsText, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import { pixel } from "../../support/upstreams/Upstream.ts"
import type { Reply } from "../../support/upstreams/Upstream.ts"

const folder = temporaryFolder("families")
const catalog = join(folder, "catalog.json")
/** And one of each family that its vendor does not have. */
const gone = catalogOfFamilies.add
  .filter(({ artifacts }) => artifacts === "copy")
  .map((entry) =>
    Object.assign({}, entry, {
      model: `${entry.adapter}-gone`,
      upstreamModel: `${entry.upstreamModel}-1`
    })
  )
writeFileSync(catalog, JSON.stringify({ add: [...catalogOfFamilies.add, ...gone] }))

/** A part of the vendor's own message that a client must not see. */
const words = "proj-internal"
const saysGone: { readonly [upstream in Family["upstream"]]: Reply } = {
  dashscope: { status: 404, json: { code: "ModelNotFound", message: `Not found: ${words}` } },
  gemini: {
    status: 404,
    json: { error: { code: 404, status: "NOT_FOUND", message: `models/x is gone: ${words}` } }
  },
  openai: {
    status: 404,
    json: { error: { code: "model_not_found", message: `The model is gone: ${words}` } }
  },
  fal: { status: 410, json: { detail: { error: "EndpointDeprecated", message: words } } },
  replicate: { status: 422, json: { detail: `The specified version does not exist: ${words}` } }
}

/** Each vendor family in the whole service. */
describe("every vendor family", () => {
  let upstreams: Upstreams
  beforeAll(async () => {
    upstreams = await startUpstreams()
  })
  beforeEach(() => {
    for (const upstream of Object.values(upstreams)) upstream.reset()
  })
  afterAll(async () => {
    for (const upstream of Object.values(upstreams)) await upstream.close()
  })
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({ CATALOG_FILE: catalog, LOG_LEVEL: "None", ...vendorEnv(upstreams) })
    )
  )

  liveLayer(gateway)((it) => {
    it.effect(
      "results are copied unless the catalog passes on the vendor's URLs, which last and need no key",
      () =>
        Effect.gen(function* () {
          for (const upstream of Object.values(upstreams)) upstream.runningPolls = 0
          const results = yield* Effect.forEach(
            families.flatMap((family) =>
              (["copy", "vendor-url"] as const).map((artifacts) => ({ family, artifacts }))
            ),
            Effect.fnUntraced(function* ({ artifacts, family }) {
              const prompt = `${family.adapter} ${artifacts}`
              const task = yield* finishedTask(pathOf(family, artifacts), bodyOf(family, prompt))
              const url = task[family.result]?.[0] ?? JSON.stringify(task)
              const isCopy = url.includes("/artifacts/art_")
              const expected = artifacts === "copy" || !family.hasLastingUrls
              // The URL needs no key
              const medium = yield* Effect.promise(() => fetch(url))
              const bytes = Buffer.from(yield* Effect.promise(() => medium.arrayBuffer()))
              return { prompt, isCopy, expected, isWhole: bytes.equals(pixel), url }
            }),
            { concurrency: "unbounded" }
          )
          for (const { expected, isCopy, isWhole, prompt, url } of results) {
            assert.strictEqual(isCopy, expected, `${prompt}: ${url}`)
            assert.isTrue(isWhole, `${prompt}: ${url}`)
          }
        }),
      120_000
    )

    /** docs/reference/vendors.md#error-classes */
    for (const family of families) {
      it.effect(
        `${family.adapter}: a removed model fails only its own tasks, and the operator is notified`,
        () =>
          Effect.gen(function* () {
            const path = `/vendors/test/v1/${family.adapter}-gone/${family.action}`
            for (const upstream of Object.values(upstreams)) upstream.runningPolls = 0
            const before = yield* wallet
            upstreams[family.upstream].submitFaults = [saysGone[family.upstream]]
            const { task_info } = yield* finishedTask(path, bodyOf(family, "p"))
            assert.strictEqual(task_info.error?.code, 4008)
            assert.match(task_info.error?.detail ?? "", /vendor no longer offers this model/u)
            assert.notInclude(task_info.error?.detail, words)
            assert.deepStrictEqual(yield* wallet, before)
            const account = `account="${family.adapter}@[^"]+"`
            const series = `gateway_vendor_operator_faults_total\\{.*${account}.*cause="gone_model".*\\} 1`
            assert.match(yield* metricsText, new RegExp(`^${series}$`, "mu"))

            const refused = yield* call(path, json(bodyOf(family, "p")))
            assert.strictEqual(refused.status, 503)
            const other = yield* finishedTask(pathOf(family), bodyOf(family, "p"))
            assert.strictEqual(other.task_info.status, "completed", JSON.stringify(other))
            assert.notMatch(yield* metricsText, /gateway_account_paused_seconds\{.*\} [1-9]/u)
          })
      )
    }

    /** Cancels a running task and waits until everything that follows from it has happened. */
    const cancelledTask = Effect.fnUntraced(function* (family: Family) {
      const upstream = upstreams[family.upstream]
      upstream.runningPolls = 1_000_000
      const path = pathOf(family)
      const created = yield* call(path, json(bodyOf(family, "p")))
      const { task_info } = (yield* Effect.promise(() => created.json())) as {
        task_info: { id: string }
      }
      const polled = () => [...upstream.jobs.values()].some(({ polls }) => polls > 0)
      yield* waitFor(Effect.sync(polled))
      const cancelled = yield* call(`${path}/${task_info.id}`, { method: "DELETE" })
      assert.strictEqual(cancelled.status, 200)
      if (family.canCancel) yield* waitFor(Effect.sync(() => upstream.cancels > 0))
      const task = yield* call(`${path}/${task_info.id}`)
      assert.include(yield* Effect.promise(() => task.text()), '"code":4004')
      // Everything that follows has happened once another task has ended
      upstream.runningPolls = 0
      yield* finishedTask(path, bodyOf(family, "another"))
      assert.strictEqual(upstream.cancels, family.canCancel ? 1 : 0, family.adapter)
    })

    for (const [what, fails] of [
      ["a cancel of a running task cancels its job at the vendor once, if the vendor can", false],
      ["a cancel that fails at the vendor changes nothing and is not repeated", true]
    ] as const) {
      it.effect(
        what,
        () =>
          Effect.gen(function* () {
            const running = families.filter(({ isBlocking }) => !isBlocking)
            for (const { upstream } of running) {
              upstreams[upstream].cancelFaults = fails ? ["unavailable", "unavailable"] : []
            }
            const before = yield* wallet
            yield* Effect.forEach(running, cancelledTask, { concurrency: "unbounded" })
            // The others were not cancelled and are charged
            const others = running.reduce((sum, { price }) => sum + Number(price), 0)
            const after = yield* wallet
            assert.strictEqual(before.available - after.available, others)
            assert.strictEqual(after.held, 0)
          }),
        180_000
      )
    }
  })
})

layer(Layer.empty)("the built-in catalog", (it) => {
  it.effect("copies the results of every model, which outlast the vendors' own URLs", () =>
    Effect.sync(() => {
      assert.isNotEmpty(builtInEntries)
      for (const { artifacts, label } of builtInEntries) {
        assert.strictEqual(artifacts, "copy", label)
      }
    })
  )
})

const wallet = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
  Effect.promise(async () => {
    const wallet = (await got.json()) as { available_balance: string; held_balance: string }
    return { available: Number(wallet.available_balance), held: Number(wallet.held_balance) }
  })
)

/** Real time, at most 20 seconds. */
const waitFor = <E, R>(isThere: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(isThere, { until: (it) => it, schedule: Schedule.spaced(20), times: 1000 }).pipe(
    Effect.map((there) => assert.isTrue(there))
  )
