import { Effect, Schema } from "effect"
import * as Tool from "effect/ai/Tool"
import { WalletView } from "../../contract/WalletApi.ts"
import { Wallet } from "../../wallet/Wallet.ts"
import { showWallet } from "../manage/wallet/WalletHandlers.ts"
import { bind, readsOnly } from "./Tools.ts"

const definition = Tool.make("wallet", {
  description:
    "Shows the balance in credits (100 credits are 1 US dollar): what is available, settled and held by running tasks.",
  success: Schema.Struct(WalletView.fields)
})
  .annotate(Tool.Title, "Wallet")
  .annotateMerge(readsOnly)

export const makeWalletTools = Effect.map(Wallet, (wallet) => [
  bind(definition, "manage", (_args, { userId }) =>
    Effect.map(wallet.get(userId), (row) => ({ value: showWallet(row) }))
  )
])
