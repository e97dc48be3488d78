import { Effect } from "effect"
import { wallet } from "../../contract/McpTools.ts"
import { Wallet } from "../../wallet/Wallet.ts"
import { showWallet } from "../manage/wallet/WalletHandlers.ts"
import { bind } from "./Tools.ts"

export const makeWalletTools = Effect.map(Wallet, ({ get }) => [
  bind(wallet, "manage", (_args, { userId }) =>
    Effect.map(get(userId), (row) => ({ value: showWallet(row) }))
  )
])
