import { api } from "../../api/client.ts"
import { pageAfter } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import { session } from "../../api/session.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { CsvLink } from "../../components/list/CsvLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { viewedUser } from "../../router/location.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { actionName } from "./actionName.ts"
import { auditColumns } from "./auditColumns.tsx"
import type { Entry } from "./auditColumns.tsx"

const words = operatorTexts.audit
const pageSize = 50

/** The actions of the entries shown. */
const filtersWith = (entries: ReadonlyArray<Entry>): ReadonlyArray<Filter> => [
  {
    name: "type",
    label: words.type,
    kind: "choice",
    options: [...new Set(entries.map(({ type }) => type))].sort().map((it) => [it, actionName(it)])
  },
  { name: "resource_id", label: words.resourceId, kind: "text" },
  { name: "actor_id", label: words.actorId, kind: "text" },
  { name: "since", label: filterTexts.since, kind: "time" },
  { name: "until", label: filterTexts.until, kind: "time" }
]

/** In the address, `user_id` is the user as whom the operator views the console. */
const userFilter: Filter = { name: "of_user", label: words.userId, kind: "text" }

const names = ["type", "resource_id", "actor_id", "since", "until"] as const

/** `/audit-log`: the user's own entries or, for the operator, all entries. */
export default function AuditPage() {
  const viewed = viewedUser()
  const isOfAll = session.value?.role === "operator" && viewed === undefined
  const { of_user: user } = isOfAll ? filterValues(["of_user"]) : {}
  const search = { ...filterValues(names), ...(user === undefined ? {} : { user_id: user }) }
  const pages = usePages<Entry>(
    "audit",
    JSON.stringify([viewed, search]),
    (cursor) =>
      api.GET("/manage/v1/audit-log", {
        query: { ...search, ...pageAfter(pageSize, cursor) }
      }),
    ({ id }) => id
  )
  const filters = filtersWith(pages.rows)
  return (
    <>
      <PageHeader title={words.title} about={words.about}>
        <CsvLink path="/manage/v1/audit-log" query={search} />
      </PageHeader>
      <Filters filters={isOfAll ? [userFilter, ...filters] : filters} />
      <PagedTable
        caption={words.caption}
        columns={auditColumns}
        pages={pages}
        idOf={({ id }) => id}
        empty={<Empty title={Object.keys(search).length === 0 ? words.empty : words.noMatch} />}
      />
    </>
  )
}
