import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { StoreUnavailable } from "../../src/domain/Problem.ts"
import * as Gateway from "../../src/Gateway.ts"
import { WalletStore } from "../../src/wallet/WalletStore.ts"
import { callWith, layerGateway } from "../support/gateway.ts"

/** docs/reference/http.md#metrics, ADR 0223 */

let isAway = false

const stores = Layer.effect(
  WalletStore,
  Effect.map(WalletStore, (live) => ({
    ...live,
    drift: Effect.suspend(() =>
      isAway ? Effect.fail(new StoreUnavailable({ cause: "away" })) : live.drift
    )
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
    assert.notMatch(text, /^gateway_(?:wallet_drift|tasks)\b/mu)
  }).pipe(Effect.provide(layerGateway({ stores })))
)
