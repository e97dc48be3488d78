import { api } from "../../api/client.ts"
import { usePages } from "../../api/pages.ts"
import { isOverAll } from "../../api/session.ts"
import { Filters, filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { CsvLink } from "../../components/list/CsvLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { filterTexts } from "../../texts/en/filters.ts"
import { operatorTexts } from "../../texts/en/operator.ts"
import { actionName } from "./actionName.ts"
import { auditColumns } from "./auditColumns.tsx"
import type { Entry } from "./auditColumns.tsx"

const words = operatorTexts.audit

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
const userFilter: Filter = { name: "of_user", label: operatorTexts.all.userId, kind: "text" }

const names = ["type", "resource_id", "actor_id", "since", "until"] as const

/** `/audit-log`: the user's own entries or, for the operator, all entries. */
export default function AuditPage() {
  const isOfAll = isOverAll()
  const { of_user: user } = isOfAll ? filterValues(["of_user"]) : {}
  const search = { ...filterValues(names), ...(user === undefined ? {} : { user_id: user }) }
  const pages = usePages("audit", search, (page) =>
    api.GET("/manage/v1/audit-log", { query: { ...search, ...page } })
  )
  const filters = filtersWith(pages.rows)
  return (
    <>
      <PageHeader title={words.title} about={words.about}>
        <CsvLink path="/manage/v1/audit-log" query={search} />
      </PageHeader>
      <Filters filters={isOfAll ? [userFilter, ...filters] : filters} />
      <PagedTable words={words} search={search} columns={auditColumns} pages={pages} />
    </>
  )
}
