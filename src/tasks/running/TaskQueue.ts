import type { VendorAccount } from "../../vendors/VendorClient.ts"

/** Tasks whose next steps are claimed together, the earliest due time first. ADR 0149. */
export interface TaskQueue {
  readonly name: string
  /** The minimum time between two claims, over all processes, if the vendor has a rate limit. */
  readonly spacingMillis?: number
}

/** The queue of submits to a model whose account is not chosen yet, or that wait for a retry. */
export const submitQueue = (of: {
  readonly vendor: string
  readonly model: string
}): TaskQueue => ({
  name: `${of.vendor}/${of.model}/submits`
})

/** The queue of submits or polls under the vendor's rate limit, if it has one. */
export const ratedQueue = (
  account: VendorAccount,
  act: "submit" | "poll",
  upstreamModel: string
): TaskQueue | undefined => {
  const rate = account.rateOf?.(act, upstreamModel)
  return rate === undefined
    ? undefined
    : { name: rate.key, spacingMillis: rate.perMillis / rate.calls }
}

/**
 * The queue of an account's submits whose outcome is unknown. One list request searches for the jobs of them all.
 * ADR 0194.
 */
export const listQueue = ({ accountId }: VendorAccount): TaskQueue => ({
  name: `${accountId}/lists`,
  spacingMillis: betweenListsMillis
})

/** The minimum time between two list requests, over all processes. */
export const betweenListsMillis = 5000

/** The queue of an account's polls. */
export const pollQueue = (account: VendorAccount, upstreamModel: string): TaskQueue =>
  ratedQueue(account, "poll", upstreamModel) ?? { name: `${account.accountId}/polls` }
