import { api } from "../../api/client.ts"
import type { Schemas, SearchOf } from "../../api/schema.ts"

type RedeliveryFilter = Schemas["RedeliveryFilter"]

export const statuses = ["pending", "delivering", "succeeded", "failed", "skipped"] as const

/** The filters of the list. */
export type Search = SearchOf<"/manage/v1/webhook-deliveries">

/** The filter as a redelivery. `undefined`: a redelivery would select other deliveries than the list shows. */
export const redeliveryOf = (search: Search): RedeliveryFilter | undefined => {
  const { status, task_id: task, trace_id: trace, ...rest } = search
  if (task !== undefined || trace !== undefined) return undefined
  if (status === undefined) return rest
  return status === "pending" || status === "delivering" ? undefined : { ...rest, status }
}

/** A call resends a limited number of deliveries; the cursor leads to the rest. */
export const redeliverAll = async (
  filter: RedeliveryFilter,
  cursor?: string,
  before = 0
): Promise<number> => {
  const body = { filter, ...(cursor === undefined ? {} : { cursor }) }
  const { next_cursor: next, redelivered } = await api.POST(
    "/manage/v1/webhook-deliveries/redeliver",
    { body }
  )
  const count = before + redelivered
  return next === null ? count : redeliverAll(filter, next, count)
}
