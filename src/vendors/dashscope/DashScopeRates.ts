import type { AccountSetting } from "../../domain/Provider.ts"
import type { Rate, SlotLimit } from "../VendorClient.ts"
import { limitOf, modelIdAt } from "./DashScopeModels.ts"

/** Rates of submits, by model. docs/reference/vendors.md#dashscope-rates */
export const rateOf =
  (account: AccountSetting) =>
  (act: "submit" | "poll", upstreamModel: string): Rate | undefined => {
    const limit = limitOf(account, upstreamModel)
    if (act === "poll" || limit === undefined) return undefined
    const { calls, perMillis } = limit
    return { key: `${account.id}/submits/${modelIdAt(account, upstreamModel)}`, calls, perMillis }
  }

/** Limit of concurrent jobs of one model; a limit of the operator replaces it (ADR 0108). */
export const slotsOf =
  (account: AccountSetting) =>
  (upstreamModel: string): SlotLimit | undefined => {
    const max = limitOf(account, upstreamModel)?.concurrent
    return max === undefined
      ? undefined
      : { line: `${account.id}/${modelIdAt(account, upstreamModel)}`, max }
  }
