import { api } from "../../api/client.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { choiceIn, Filters } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { OwnerLink } from "../../components/list/OwnerLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { searchOverAll, useFiltersOverAll } from "../../components/list/workFilters.ts"
import { PageHeader } from "../../components/PageHeader.tsx"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { callColumns } from "./callColumns.tsx"
import { callName } from "./tokens.tsx"

type Call = Schemas["OperatorCall"]

const words = operatorTexts.all
export const outcomes = ["settled", "released", "lost"] as const

export const outcomeFilter: Filter = {
  name: "outcome",
  label: filterTexts.outcome,
  kind: "segments",
  options: outcomes.map((it) => [it, callTexts.outcomes[it]])
}

const columns: ReadonlyArray<Column<Call>> = [
  {
    title: filterTexts.model,
    isPlain: true,
    cell: (call) => (
      <Link to={`/calls/${call.id}`} query={{ user_id: call.user.id }}>
        {callName(call)}
      </Link>
    )
  },
  { title: operatorTexts.users.user, cell: ({ user }) => <OwnerLink of={user} /> },
  ...callColumns.slice(1)
]

/** The operator's list over all users. A call opens as its user sees it. */
export const AllCalls = () => {
  const search = { ...searchOverAll(), ...choiceIn("outcome", outcomes) }
  const pages = usePages("all calls", search, (page) =>
    api.GET("/manage/v1/operator/calls", { query: { ...search, ...page } })
  )
  return (
    <>
      <PageHeader about={words.about}>
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={useFiltersOverAll(outcomeFilter)} />
      <PagedTable
        words={{ ...callTexts, caption: words.calls, emptyDetail: undefined }}
        search={search}
        columns={columns}
        pages={pages}
      />
    </>
  )
}
