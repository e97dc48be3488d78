import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { StoreUnavailable } from "../../src/domain/Problem.ts"
import * as Gateway from "../../src/Gateway.ts"
import { WalletStore } from "../../src/wallet/WalletStore.ts"
import { advance, callWith, eventually, layerGateway } from "../support/gateway.ts"

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

it.effect("a scrape answers while the store is away, and says so", () =>
  Effect.gen(function* () {
    const metrics = callWith(undefined)("GET", "/metrics")
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
  }).pipe(Effect.provide(layerGateway({ stores })))
)

it.effect("scrapes answer in 5 seconds while the store is silent, and wait by one statement", () =>
  Effect.gen(function* () {
    const metrics = callWith(undefined)("GET", "/metrics")
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
  }).pipe(Effect.provide(layerGateway({ stores })))
)
