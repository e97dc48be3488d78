import type { VendorAccount } from "../../vendors/VendorClient.ts"

/** Tasks whose next steps are claimed together, oldest due first. ADR 0149. */
export interface TaskQueue {
  readonly name: string
  /** The time between two claims, over all processes, if the vendor has a rate limit. */
  readonly spacingMillis?: number
}

/** Submits of a model whose account has not been chosen yet, or that wait for a retry. */
export const submitQueue = (of: {
  readonly vendor: string
  readonly model: string
}): TaskQueue => ({
  name: `${of.vendor}/${of.model}/submits`
})

/** Submits or polls under the vendor's rate limit, if it has one. */
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

/** Submits to an account whose outcome is unknown: one list request searches for the jobs of all. ADR 0194. */
export const listQueue = ({ accountId }: VendorAccount): TaskQueue => ({
  name: `${accountId}/lists`,
  spacingMillis: betweenListsMillis
})

/** Over all processes. */
export const betweenListsMillis = 5000

/** Polls of an account. */
export const pollQueue = (account: VendorAccount, upstreamModel: string): TaskQueue =>
  ratedQueue(account, "poll", upstreamModel) ?? { name: `${account.accountId}/polls` }
