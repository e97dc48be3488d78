import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach } from "vitest"
import { bodyOf, families, startUpstreams, vendorEnv } from "../../support/families.ts"
import type { Family, Upstreams } from "../../support/families.ts"
import { call, finishedTask, json, metricsText, runningGateway } from "../../support/running.ts"
import { temporaryFolder } from "../../support/temporaryFolder.ts"
import type { Reply } from "../../support/upstreams/Upstream.ts"

const folder = temporaryFolder("gone-models")
const catalog = join(folder, "catalog.json")
const entryOf = ({ action, adapter, input, label, result }: Family, upstreamModel: string) => ({
  label,
  vendor: "test",
  action,
  adapter,
  result,
  upstreamModel,
  ...(input === undefined ? {} : { input })
})
writeFileSync(
  catalog,
  JSON.stringify({
    add: families.flatMap((family) => [
      { ...entryOf(family, `${family.upstreamModel}-1`), model: `${family.adapter}-gone` },
      { ...entryOf(family, family.upstreamModel), model: `${family.adapter}-other` }
    ])
  })
)

/** A part of the vendor's own message that a client must not see. */
const words = "proj-internal"
const gone: { readonly [upstream in Family["upstream"]]: Reply } = {
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

/** docs/reference/vendors.md#error-classes */
describe("a model that the vendor says is gone", () => {
  let upstreams: Upstreams
  beforeAll(async () => {
    upstreams = await startUpstreams()
  })
  beforeEach(() => {
    for (const upstream of Object.values(upstreams)) {
      upstream.reset()
      upstream.runningPolls = 0
    }
  })
  afterAll(async () => {
    for (const upstream of Object.values(upstreams)) await upstream.close()
    rmSync(folder, { recursive: true })
  })
  const gateway = Layer.unwrap(
    Effect.sync(() =>
      runningGateway({ CATALOG_FILE: catalog, LOG_LEVEL: "None", ...vendorEnv(upstreams) })
    )
  )
  const wallet = Effect.flatMap(call("/manage/v1/wallet"), (got) =>
    Effect.promise(() => got.text())
  )
  const metrics = metricsText

  layer(gateway, { excludeTestServices: true })((it) => {
    for (const family of families) {
      it.effect(`${family.adapter}: fails its own tasks alone, and the operator is notified`, () =>
        Effect.gen(function* () {
          const path = (which: "gone" | "other") =>
            `/vendors/test/v1/${family.adapter}-${which}/${family.action}`
          const before = yield* wallet
          upstreams[family.upstream].submitFaults = [gone[family.upstream]]
          const { task_info } = yield* finishedTask(path("gone"), bodyOf(family, "p"))
          assert.strictEqual(task_info.error?.code, 4008)
          assert.match(task_info.error?.detail ?? "", /vendor no longer offers this model/u)
          assert.notInclude(task_info.error?.detail, words)
          assert.strictEqual(yield* wallet, before)
          const account = `account="${family.adapter}@[^"]+"`
          const series = `gateway_vendor_operator_faults_total\\{.*${account}.*cause="gone_model".*\\} 1`
          assert.match(yield* metrics, new RegExp(`^${series}$`, "mu"))

          const refused = yield* call(path("gone"), json(bodyOf(family, "p")))
          assert.strictEqual(refused.status, 503)
          const other = yield* finishedTask(path("other"), bodyOf(family, "p"))
          assert.strictEqual(other.task_info.status, "completed", JSON.stringify(other))
          assert.notMatch(yield* metrics, /gateway_account_paused_seconds\{.*\} [1-9]/u)
        })
      )
    }
  })
})
