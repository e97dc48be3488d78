import { api } from "../../api/client.ts"
import { pageAfter, useKeys, useModelNames } from "../../api/lists.ts"
import { useLive } from "../../api/live.ts"
import { usePages } from "../../api/pages.ts"
import { isOverAll } from "../../api/session.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { AllCalls } from "./AllCalls.tsx"
import { callColumns } from "./callColumns.tsx"
import { KeepCalls, useKeepsCalls } from "./KeepCalls.tsx"
import type { Call } from "./tokens.tsx"

const words = callTexts
const pageSize = 50
const outcomes = ["settled", "released", "lost"] as const

const useFilters = (
  keys: ReadonlyArray<readonly [id: string, name: string]>
): ReadonlyArray<Filter> => {
  const { models, vendors } = useModelNames()
  return [
    {
      name: "outcome",
      label: filterTexts.outcome,
      kind: "segments",
      options: outcomes.map((it) => [it, words.outcomes[it]])
    },
    { name: "model", label: filterTexts.model, kind: "choice", options: models },
    { name: "vendor", label: filterTexts.vendor, kind: "choice", options: vendors },
    { name: "api_key_id", label: words.key, kind: "choice", options: keys },
    { name: "trace_id", label: filterTexts.traceId, kind: "text" },
    { name: "since", label: filterTexts.since, kind: "time" },
    { name: "until", label: filterTexts.until, kind: "time" },
    { name: "min_cost", label: filterTexts.minCost, kind: "amount" },
    { name: "max_cost", label: filterTexts.maxCost, kind: "amount" }
  ]
}

const names = [
  "model",
  "vendor",
  "api_key_id",
  "trace_id",
  "since",
  "until",
  "min_cost",
  "max_cost"
] as const

/** `/calls`: receipts of a user's calls or, for the operator, of all calls, with filters in the address. */
export default function CallsPage() {
  return isOverAll() ? <AllCalls /> : <OwnCalls />
}

const OwnCalls = () => {
  const user = viewedUser() ?? ""
  const settings = useKeepsCalls()
  const { outcome: chosen } = filterValues(["outcome"])
  const outcome = outcomes.find((it) => it === chosen)
  const search = { ...filterValues(names), ...(outcome === undefined ? {} : { outcome }) }
  const keys = useKeys(user)
  const filters = useFilters([...keys.values()].map(({ id, name }) => [id, name]))
  const pages = usePages<Call>(
    "calls",
    JSON.stringify([user, search]),
    (cursor) =>
      api.GET("/manage/v1/calls", {
        query: { ...search, ...pageAfter(pageSize, cursor) }
      }),
    ({ id }) => id
  )
  useLive((event) => {
    if (event.type === "poll" && !pages.isLoading && pages.rows.length <= pageSize) pages.reload()
  })
  return (
    <>
      <PageHeader title={words.title} about={words.about}>
        {settings.data !== undefined && (
          <KeepCalls
            isKept={settings.data.keep_calls}
            onChanged={(kept) => settings.set({ keep_calls: kept })}
          />
        )}
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={filters} />
      <PagedTable
        caption={words.caption}
        columns={callColumns}
        pages={pages}
        idOf={({ id }) => id}
        empty={
          Object.keys(search).length > 0 ? (
            <Empty title={words.noMatch} />
          ) : (
            <Empty title={words.empty}>
              <p>{words.emptyDetail}</p>
            </Empty>
          )
        }
      />
    </>
  )
}
