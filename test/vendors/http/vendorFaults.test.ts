import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { beforeEach } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import {
  call,
  endedTask,
  finishedTask,
  json,
  metricsText,
  runningGateway
} from "../../support/running.ts"
import type { Task } from "../../support/running.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const preview = "/vendors/alibaba/v1/text-to-image-preview/generation"

const alibaba = await upstreamOfTests(Upstream.start(dashscope))

describe("a gateway with keys", () => {
  beforeEach(() => {
    alibaba.runningPolls = 0
  })
  const gateway = runningGateway({
    DASHSCOPE_API_KEY: alibaba.key,
    DASHSCOPE_BASE_URL: alibaba.url,
    LOG_LEVEL: "None"
  })
  const prompt = { prompt: "A lighthouse", n: 1 }
  const wallet = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
    Effect.promise(() => got.json() as Promise<{ held_balance: string; settled_balance: string }>)
  )

  liveLayer(gateway)((it) => {
    it.effect("shows nothing of the service's own key if a refusal quotes it in any form", () =>
      Effect.gen(function* () {
        const message = `Not for ${alibaba.key}: ws-abc123 of http://10.0.0.9/x wants a size`
        alibaba.submitFaults = [{ status: 400, json: { code: "InvalidParameter", message } }]
        const { task_info } = yield* finishedTask(preview, prompt)
        assert.strictEqual(task_info.error?.code, 400)
        const shown = `Not for ${"*".repeat(alibaba.key.length)}: [hidden] of [hidden] wants a size`
        assert.strictEqual(task_info.error?.detail, shown)
      })
    )

    it.effect("fails a task with 3004 without a charge if the result's URL no longer exists", () =>
      Effect.gen(function* () {
        const before = yield* wallet
        alibaba.isResultGone = true
        const task = yield* finishedTask(preview, prompt)
        assert.strictEqual(task.task_info.error?.code, 3004)
        assert.deepEqual(yield* wallet, before)
      })
    )

    // The last test, because the account is out of use afterwards
    it.effect(
      "fails a task with 4008 on a fault of its own account, and the next create is 503",
      () =>
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
          // A repeat of an earlier create gets its response again, and its key is refused with any other body
          const again = yield* call(preview, keyed(prompt))
          assert.strictEqual(again.status, 202)
          assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
          const texts = [again, first].map((it) => Effect.promise(() => it.text()))
          const [repeated, answered] = yield* Effect.all(texts)
          assert.strictEqual(repeated, answered)
          assert.strictEqual((yield* call(preview, keyed({ prompt: "other" }))).status, 422)
          assert.match(
            yield* metricsText,
            /^gateway_vendor_operator_faults_total\{.*account="dashscope-async@dashscope:\w+".*\} 1$/mu
          )
        })
    )
  })
})
