import { api } from "../../api/client.ts"
import { pageAfter } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { Link } from "../../components/Link.tsx"
import { searchOverAll, useFiltersOverAll } from "../../components/list/overAll.ts"
import { OwnerLink } from "../../components/list/OwnerLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { texts } from "../../texts/en.ts"
import { callTexts } from "../../texts/en/calls.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { callColumns } from "./callColumns.tsx"
import { callName } from "./tokens.tsx"

type Call = Schemas["OperatorCall"]

const words = operatorTexts.all
const pageSize = 50
const outcomes = ["settled", "released", "lost"] as const

const outcomeFilter: Filter = {
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
  const { outcome: chosen } = filterValues(["outcome"])
  const outcome = outcomes.find((it) => it === chosen)
  const search = { ...searchOverAll(), ...(outcome === undefined ? {} : { outcome }) }
  const pages = usePages<Call>(
    "all calls",
    JSON.stringify(search),
    (cursor) =>
      api.GET("/manage/v1/operator/calls", {
        query: { ...search, ...pageAfter(pageSize, cursor) }
      }),
    ({ id }) => id
  )
  return (
    <>
      <PageHeader title={callTexts.title} about={words.about}>
        <button type="button" onClick={pages.reload}>
          {texts.refresh}
        </button>
      </PageHeader>
      <Filters filters={useFiltersOverAll(outcomeFilter)} />
      <PagedTable
        caption={words.calls}
        columns={columns}
        pages={pages}
        idOf={({ id }) => id}
        empty={
          <Empty title={Object.keys(search).length > 0 ? callTexts.noMatch : callTexts.empty} />
        }
      />
    </>
  )
}
