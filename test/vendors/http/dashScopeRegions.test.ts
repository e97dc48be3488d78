import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Logger } from "effect"
import { beforeEach } from "vitest"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import type { CatalogError } from "../../../src/catalog/CatalogSource.ts"
import * as ModelCheck from "../../../src/cli/ModelCheck.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { dashscope } from "../../../src/testing/vendors/DashScopeProtocol.ts"
import { upstreamOfTests } from "../../support/mockVendors.ts"
import { call, finishedTask, json, runningGateway } from "../../support/running.ts"
import { Upstream } from "../../support/upstreams/Upstream.ts"

const body = { prompt: "p", size: "1280*720" }
const spark = "/vendors/service/v1/text-to-video-spark/generation"

const upstream = await upstreamOfTests(Upstream.start(dashscope))

/** docs/reference/vendors.md#dashscope-regions */
describe("accounts of DashScope in several regions", () => {
  beforeEach(() => {
    upstream.runningPolls = 0
  })

  const running = (...regions: ReadonlyArray<string>) =>
    Layer.unwrap(
      Effect.sync(() =>
        runningGateway({
          DASHSCOPE_BASE_URL: `${upstream.url}/api/v1`,
          DASHSCOPE_API_KEY: regions
            .map((region) => {
              const base = region === "us-east-1" ? ";base=http://127.0.0.1:9/api/v1" : ""
              return `${upstream.key};region=${region};name=${region}${base}`
            })
            .join(",")
        })
      )
    )

  it.live("get no job of a model that their region does not have", () =>
    Effect.gen(function* () {
      // Unreachable: a job that goes there fails
      const tasks = yield* Effect.forEach([1, 2, 3], () => finishedTask(spark, body), {
        concurrency: "unbounded"
      })
      assert.deepEqual(
        tasks.map(({ task_info }) => task_info.status),
        ["completed", "completed", "completed"]
      )
      assert.strictEqual(upstream.paidSubmits, 3)
    }).pipe(Effect.provide(running("us-east-1", "ap-southeast-1")))
  )

  it.live(
    "cause a 503 with code 5003 for a model that none of them has, before any request to the vendor",
    () =>
      Effect.gen(function* () {
        const response = yield* call(spark, json(body))
        assert.strictEqual(response.status, 503)
        const problem = (yield* Effect.promise(() => response.json())) as { code: number }
        assert.strictEqual(problem.code, 5003)
        assert.strictEqual(upstream.seen.length, 0)
      }).pipe(Effect.provide(running("us-east-1")))
  )
})

describe("the start", () => {
  const linesOf = (
    env: Readonly<Record<string, string>>,
    catalog: Layer.Layer<Catalog, CatalogError> = Catalog.layer
  ) =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ logLevel, message }) => {
        lines.push(`${logLevel} ${String(message)}`)
      })
      yield* Effect.scoped(Layer.build(ModelCheck.layer)).pipe(
        Effect.provide([catalog, AppConfig.layerOf(env), Logger.layer([logger])])
      )
      return lines
    })

  it.effect("logs the models that an account's region lacks and those that no account has", () =>
    Effect.gen(function* () {
      const lines = yield* linesOf({
        DASHSCOPE_API_KEY: "a;name=us;base=https://dashscope-us.aliyuncs.com/api/v1"
      })
      assert.strictEqual(lines.length, 2)
      assert.match(
        lines[0] ?? "",
        /^Warn Account dashscope:us gets no jobs for wan2\.5-t2v-preview, /u
      )
      assert.match(lines[0] ?? "", /: us-east-1 does not have them$/u)
      assert.match(lines[1] ?? "", /^Error No account has wan2\.5-t2v-preview, .*code 5003/u)
    })
  )

  it.effect("logs that OpenAI's own host no longer makes videos", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const path = yield* files.makeTempFileScoped()
      const sora = { label: "text-to-video-spark", model: "sora", adapter: "openai-video" }
      yield* files.writeFileString(
        path,
        JSON.stringify({ add: [{ ...sora, upstreamModel: "sora-2" }] })
      )
      const catalog = Catalog.layerFile(path).pipe(Layer.provide(NodeFileSystem.layer))
      const own = yield* linesOf({ OPENAI_API_KEY: "a;name=own" }, catalog)
      assert.strictEqual(own.length, 2)
      assert.strictEqual(
        own[0],
        "Warn Account openai:own gets no jobs for sora-2: api.openai.com does not have them"
      )
      const other = "a,b;name=other;base=https://videos.example/v1"
      assert.strictEqual((yield* linesOf({ OPENAI_API_KEY: other }, catalog)).length, 1)
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))
  )

  it.effect("logs no error if another account has the models, and nothing if all have them", () =>
    Effect.gen(function* () {
      const lines = yield* linesOf({ DASHSCOPE_API_KEY: "a;region=us-east-1;name=us,b" })
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0] ?? "", "dashscope:us")
      assert.deepEqual(yield* linesOf({ DASHSCOPE_API_KEY: "b", OPENAI_API_KEY: "c" }), [])
    })
  )
})
