import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { StoreUnavailable } from "../../src/domain/Problem.ts"
import * as Gateway from "../../src/Gateway.ts"
import { WalletStore } from "../../src/wallet/WalletStore.ts"
import { adminToken, advance, callWith, eventually, layerGateway } from "../support/gateway.ts"

/** docs/reference/http.md#metrics, ADR 0223 */

let isAway = false
let isSilent = false
let reads = 0

const stores = Layer.effect(
  WalletStore,
  Effect.map(WalletStore, (live) => ({
    ...live,
    drift: Effect.suspend(() => {
      reads += 1
      if (isSilent) return Effect.never
      return isAway ? Effect.fail(new StoreUnavailable({ cause: "away" })) : live.drift
    })
  }))
).pipe(Layer.provideMerge(Gateway.stores))

const token = "a-token-for-prometheus"
const env = { METRICS_TOKEN: token, DASHSCOPE_API_KEY: "sk-vendor;name=one" }

layer(layerGateway({ stores, env }), { timeout: "60 seconds" })("metrics", (it) => {
  it.effect(
    "are read with METRICS_TOKEN or the operator's token, and METRICS_TOKEN reads nothing else",
    () =>
      Effect.gen(function* () {
        for (const [sent, code] of [
          [undefined, 1001],
          ["another-token-of-somebody", 1002]
        ] as const) {
          const refused = yield* callWith(sent)("GET", "/metrics")
          assert.deepStrictEqual([refused.status, refused.json.code], [401, code], refused.text)
          assert.notInclude(refused.text, "gateway_")
        }
        for (const sent of [token, adminToken]) {
          const { status, text } = yield* callWith(sent)("GET", "/metrics")
          assert.strictEqual(status, 200)
          assert.match(text, /^gateway_account_circuit\{account="dashscope:one"\} 0$/mu)
        }
        assert.strictEqual((yield* callWith(token)("GET", "/manage/v1/users")).status, 401)
        assert.strictEqual((yield* callWith(undefined)("GET", "/healthz")).status, 200)
      })
  )

  it.effect("are served while the store is away, and say so", () =>
    Effect.gen(function* () {
      const metrics = callWith(token)("GET", "/metrics")
      const before = yield* metrics
      assert.match(before.text, /^gateway_store_up 1$/mu)
      assert.match(before.text, /^gateway_tasks\{state="due"\} 0$/mu)
      isAway = true
      const { status, text } = yield* metrics
      assert.strictEqual(status, 200)
      assert.match(text, /^gateway_store_up 0$/mu)
      assert.match(text, /^process_resident_memory_bytes \d+$/mu)
      const valueOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "mu").exec(text)?.[1])
      assert.isAbove(valueOf("process_open_fds"), 10)
      assert.isAbove(valueOf("process_max_fds"), valueOf("process_open_fds"))
      assert.notMatch(text, /^gateway_(?:wallet_drift|tasks)\b/mu)
      isAway = false
    })
  )

  it.effect(
    "are served within 5 seconds while the store is silent, and scrapes share one statement",
    () =>
      Effect.gen(function* () {
        const metrics = callWith(token)("GET", "/metrics")
        isSilent = true
        reads = 0
        const scrapes = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 20 }, () => metrics),
            {
              concurrency: "unbounded"
            }
          )
        )
        yield* eventually(
          Effect.sync(() => reads),
          (count) => count > 0
        )
        yield* advance("20 millis", "1 millis")
        assert.strictEqual(reads, 1)
        yield* advance("5 seconds")
        for (const { status, text } of yield* Fiber.join(scrapes)) {
          assert.strictEqual(status, 200)
          assert.match(text, /^gateway_store_up 0$/mu)
        }
        isSilent = false
        assert.match((yield* metrics).text, /^gateway_store_up 1$/mu)
      })
  )
})
