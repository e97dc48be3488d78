import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { catalogFile } from "../../support/aliases.ts"
import { bodyOf, catalogOfFamilies, familyOf } from "../../support/families.ts"
import { eventually, layerGateway, makeUser } from "../../support/gateway.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { pause } from "../../support/until.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

/** docs/reference/vendors.md#rates-and-slots */

const alibaba = await Upstream.start(dashscope)
beforeAll(() => {
  alibaba.reset()
})
afterAll(() => alibaba.close())

const blocking = "/multimodal-generation/generation"
const env = {
  DASHSCOPE_API_KEY: `${alibaba.key};concurrent=1`,
  DASHSCOPE_BASE_URL: alibaba.url,
  CATALOG_FILE: catalogFile(catalogOfFamilies)
}

liveLayer(layerGateway({ env, areVendorsLive: true }))("slots of an account", (it) => {
  it.effect(
    "are shared by models of two protocols, and each task uses the protocol of its model",
    () =>
      Effect.gen(function* () {
        const running: Array<number> = []
        alibaba.onPaid = async () => {
          const jobs = [...alibaba.jobs.values()]
          running.push(jobs.filter((job) => alibaba.isRunning(job)).length)
          await pause(50)
          // A blocking job ends with its response
          for (const job of jobs) if (job.path.endsWith(blocking)) job.polls = Infinity
        }
        const { call } = yield* makeUser()
        const tasks = Array.from({ length: 3 }, (_, n) => {
          const family = familyOf(n % 2 === 0 ? "dashscope-sync" : "dashscope-async")
          const model = `${family.adapter}-copy`
          return { vendor: "test", model, body: bodyOf(family, `A lighthouse ${n}`) }
        })
        const made = yield* call("POST", "/manage/v1/task-batches", { tasks })
        assert.strictEqual(made.status, 202, made.text)
        const { json } = yield* eventually(
          call("GET", `/manage/v1/task-batches/${made.json.id}`),
          (it) => it.json.status === "completed"
        )
        assert.deepStrictEqual(json.counts, { total: 3, unfinished: 0, completed: 3, failed: 0 })
        assert.deepStrictEqual(running, [1, 1, 1])
        const isBlocking = [...alibaba.jobs.values()].map(({ path }) => path.endsWith(blocking))
        assert.sameMembers(isBlocking, [true, false, true])
      })
  )
})
