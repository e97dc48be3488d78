import { useModelNames } from "../../api/lists.ts"
import { texts } from "../../texts/en.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { filterValues } from "../form/Filters.tsx"
import type { Filter } from "../form/Filters.tsx"

const names = ["model", "vendor", "trace_id", "since", "until", "min_cost", "max_cost"] as const

/** The filters of the operator's lists over all users; the first one is the list's own. */
export const useFiltersOverAll = (first: Filter): ReadonlyArray<Filter> => {
  const { models, vendors } = useModelNames()
  return [
    first,
    { name: "trace_id", label: texts.filters.traceId, kind: "search" },
    { name: "of_user", label: operatorTexts.all.userId, kind: "text" },
    { name: "model", label: texts.filters.model, kind: "choice", options: models },
    { name: "vendor", label: texts.filters.vendor, kind: "choice", options: vendors },
    { name: "since", label: texts.filters.since, kind: "time" },
    { name: "until", label: texts.filters.until, kind: "time" },
    { name: "min_cost", label: texts.filters.minCost, kind: "amount" },
    { name: "max_cost", label: texts.filters.maxCost, kind: "amount" }
  ]
}

/** Their values in the address. `user_id` there is the user that the operator views as. */
export const searchOverAll = () => {
  const { of_user: user } = filterValues(["of_user"])
  return { ...filterValues(names), ...(user === undefined ? {} : { user_id: user }) }
}
