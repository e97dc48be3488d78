import { useKeys, useModelNames } from "../../api/lists.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { filterValues } from "../form/Filters.tsx"
import type { Filter } from "../form/Filters.tsx"

const names = ["model", "vendor", "trace_id", "since", "until", "min_cost", "max_cost"] as const

/** The filters of a list of tasks or calls. */
const useWorkFilters = (
  first: ReadonlyArray<Filter>,
  others: ReadonlyArray<Filter> = []
): ReadonlyArray<Filter> => {
  const { models, vendors } = useModelNames()
  return [
    ...first,
    { name: "model", label: filterTexts.model, kind: "choice", options: models },
    { name: "vendor", label: filterTexts.vendor, kind: "choice", options: vendors },
    ...others,
    { name: "since", label: filterTexts.since, kind: "time" },
    { name: "until", label: filterTexts.until, kind: "time" },
    { name: "min_cost", label: filterTexts.minCost, kind: "amount" },
    { name: "max_cost", label: filterTexts.maxCost, kind: "amount" }
  ]
}

/** The filters of a user's list; the first ones belong to the list itself. */
export const useFiltersOfUser = (
  user: string,
  keyLabel: string,
  ...first: ReadonlyArray<Filter>
): ReadonlyArray<Filter> => {
  const keys = [...useKeys(user).values()]
  return useWorkFilters(first, [
    {
      name: "api_key_id",
      label: keyLabel,
      kind: "choice",
      options: keys.map(({ id, name }) => [id, name])
    },
    { name: "trace_id", label: filterTexts.traceId, kind: "text" }
  ])
}

export const searchOfUser = () => filterValues([...names, "api_key_id"])

/** The filters of the operator's lists over all users; the first one belongs to the list itself. */
export const useFiltersOverAll = (first: Filter): ReadonlyArray<Filter> =>
  useWorkFilters([
    first,
    { name: "trace_id", label: filterTexts.traceId, kind: "search" },
    { name: "of_user", label: operatorTexts.all.userId, kind: "text" }
  ])

/** The values of these filters in the address, where `user_id` is the user as whom the operator views the console. */
export const searchOverAll = () => {
  const { of_user: user } = filterValues(["of_user"])
  return { ...filterValues(names), ...(user === undefined ? {} : { user_id: user }) }
}
