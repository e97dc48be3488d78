import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { call, endedTask, finishedTask, json, runningGateway } from "../support/running.ts"
import type { Task } from "../support/running.ts"
import { dashscope } from "../support/upstreams/dashscope.ts"
import { openai } from "../support/upstreams/openai.ts"
import { pixel, Upstream } from "../support/upstreams/Upstream.ts"

const preview = "/vendors/alibaba/v1/text-to-image-preview/generation"
const video = "/vendors/service/v1/text-to-video-spark/generation"
const folder = mkdtempSync(join(tmpdir(), "vendor-faults-"))

describe("a gateway with keys", () => {
  let alibaba: Upstream
  let sora: Upstream
  beforeAll(async () => {
    alibaba = await Upstream.start(dashscope)
    sora = await Upstream.start(openai)
  })
  beforeEach(() => {
    alibaba.reset()
    sora.reset()
    alibaba.runningPolls = 0
    sora.runningPolls = 0
  })
  afterAll(async () => {
    await alibaba.close()
    await sora.close()
    rmSync(folder, { recursive: true })
  })

  const gateway = (catalog: object = {}) => {
    const file = join(folder, "catalog.json")
    writeFileSync(file, JSON.stringify(catalog))
    return runningGateway({
      CATALOG_FILE: file,
      DASHSCOPE_API_KEY: alibaba.key,
      DASHSCOPE_BASE_URL: alibaba.url,
      OPENAI_API_KEY: sora.key,
      OPENAI_BASE_URL: `${sora.url}/v1`,
      LOG_LEVEL: "None"
    })
  }
  const prompt = { prompt: "A lighthouse", n: 1 }
  const wallet = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
    Effect.promise(() => got.json() as Promise<{ held_balance: string; settled_balance: string }>)
  )

  it.live("a fault of the service's own account fails with 4008, and the next create is 503", () =>
    Effect.suspend(() =>
      Effect.gen(function* () {
        const before = yield* wallet
        alibaba.submitFaults = ["operator"]
        const keyed = (body: object) => {
          const init = json(body)
          return { ...init, headers: { ...init.headers, "idempotency-key": "before" } }
        }
        const first = yield* call(preview, keyed(prompt))
        const { task_info } = (yield* Effect.promise(() => first.clone().json())) as Task
        const failed = yield* endedTask(preview, task_info.id)
        assert.strictEqual(failed.task_info.error?.code, 4008)
        assert.notInclude(failed.task_info.error?.detail, "good standing")

        const refused = yield* call(preview, json(prompt))
        assert.strictEqual(refused.status, 503)
        assert.isAbove(Number(refused.headers.get("retry-after")), 0)
        const problem = (yield* Effect.promise(() => refused.json())) as { code: number }
        assert.strictEqual(problem.code, 5003)
        assert.deepEqual(yield* wallet, before)
        // What was answered before is answered again, and the key is no other body's
        const again = yield* call(preview, keyed(prompt))
        assert.strictEqual(again.status, 202)
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
        const texts = [again, first].map((it) => Effect.promise(() => it.text()))
        const [repeated, answered] = yield* Effect.all(texts)
        assert.strictEqual(repeated, answered)
        assert.strictEqual((yield* call(preview, keyed({ prompt: "other" }))).status, 422)
        const metrics = yield* call("/metrics")
        assert.match(
          yield* Effect.promise(() => metrics.text()),
          /^gateway_vendor_operator_faults_total\{.*account="dashscope-async@dashscope:\w+".*\} 1$/mu
        )
      }).pipe(Effect.provide(gateway()))
    )
  )

  it.live("partial results are settled for what exists", () =>
    Effect.suspend(() =>
      Effect.gen(function* () {
        const before = yield* wallet
        alibaba.ending = "partial"
        const task = yield* finishedTask(preview, { prompt: "A lighthouse", n: 4 })
        assert.strictEqual(task.images?.length, 3)
        const after = yield* wallet
        assert.strictEqual(after.held_balance, "0.00")
        assert.strictEqual(Number(before.settled_balance) - Number(after.settled_balance), 9)
      }).pipe(Effect.provide(gateway()))
    )
  )

  it.live("a result URL that is gone is 3004, and nothing is charged", () =>
    Effect.suspend(() =>
      Effect.gen(function* () {
        const before = yield* wallet
        alibaba.isResultGone = true
        const task = yield* finishedTask(preview, prompt)
        assert.strictEqual(task.task_info.error?.code, 3004)
        assert.deepEqual(yield* wallet, before)
      }).pipe(Effect.provide(gateway()))
    )
  )

  it.live(
    "the catalog may hand on the vendor's own URLs; what needs the key is copied anyhow",
    () =>
      Effect.suspend(() =>
        Effect.gen(function* () {
          const image = yield* finishedTask(preview, prompt)
          assert.match(image.images?.[0] ?? "", new RegExp(`^${alibaba.url}/results/`, "u"))

          const made = yield* finishedTask(video, { prompt: "A lighthouse" })
          const [url = ""] = made.videos ?? []
          assert.include(url, "/artifacts/")
          const copy = yield* call(url)
          const bytes = yield* Effect.promise(() => copy.arrayBuffer())
          assert.deepEqual(Buffer.from(bytes), pixel)
        }).pipe(
          Effect.provide(
            gateway({
              change: {
                "text-to-image-preview": { artifacts: "vendor-url" },
                "text-to-video-spark": {
                  adapter: "openai-video",
                  upstreamModel: "sora-2",
                  artifacts: "vendor-url"
                }
              }
            })
          )
        )
      )
  )
})
