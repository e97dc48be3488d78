import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { WalletStore } from "../../src/store/WalletStore.ts"
import { describeStores } from "../support/stores.ts"
import { accept, breaches, credits, finish, newWallet, walletStores } from "../support/wallets.ts"

describeStores("the wallet store", (database) => {
  layer(Layer.provideMerge(walletStores, database), { timeout: "60 seconds" })((it) => {
    it.effect("create holds the price, success settles what was made, the rest returns", () =>
      Effect.gen(function* () {
        const wallets = yield* WalletStore
        const userId = yield* newWallet(100)
        const first = yield* accept(userId, 12)
        assert.deepInclude(first.outcome, { _tag: "Accepted", balance: credits(88) })
        const held = Option.getOrThrow(yield* wallets.find(userId))
        assert.deepInclude(held, { settled: credits(100), held: credits(12) })
        assert.deepInclude(yield* finish(first.taskId, 9), { _tag: "Finished" })
        const after = Option.getOrThrow(yield* wallets.find(userId))
        assert.deepInclude(after, { settled: credits(91), held: credits(0) })
        assert.deepInclude(yield* finish(first.taskId, 9), { _tag: "Fenced" })
        assert.strictEqual(yield* breaches, 0)
      })
    )
  })
})
