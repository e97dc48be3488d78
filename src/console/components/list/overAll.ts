import { useModelNames } from "../../api/lists.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { filterValues } from "../form/Filters.tsx"
import type { Filter } from "../form/Filters.tsx"

const names = ["model", "vendor", "trace_id", "since", "until", "min_cost", "max_cost"] as const

/** The filters of the operator's lists over all users; the first one belongs to the list itself. */
export const useFiltersOverAll = (first: Filter): ReadonlyArray<Filter> => {
  const { models, vendors } = useModelNames()
  return [
    first,
    { name: "trace_id", label: filterTexts.traceId, kind: "search" },
    { name: "of_user", label: operatorTexts.all.userId, kind: "text" },
    { name: "model", label: filterTexts.model, kind: "choice", options: models },
    { name: "vendor", label: filterTexts.vendor, kind: "choice", options: vendors },
    { name: "since", label: filterTexts.since, kind: "time" },
    { name: "until", label: filterTexts.until, kind: "time" },
    { name: "min_cost", label: filterTexts.minCost, kind: "amount" },
    { name: "max_cost", label: filterTexts.maxCost, kind: "amount" }
  ]
}

/** The values of these filters in the address, where `user_id` is the user as whom the operator views the console. */
export const searchOverAll = () => {
  const { of_user: user } = filterValues(["of_user"])
  return { ...filterValues(names), ...(user === undefined ? {} : { user_id: user }) }
}
