import { api, dataOf } from "../../api/client.ts"
import { pageAfter, useKeys } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { CsvLink } from "../../components/CsvLink.tsx"
import { Filters } from "../../components/Filters.tsx"
import { PagedTable } from "../../components/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Empty } from "../../components/States.tsx"
import { parseCredits } from "../../format/credits.ts"
import { setQuery, viewedUser } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { UsageChart } from "./UsageChart.tsx"
import { usageColumns } from "./usageColumns.tsx"
import { readUsageSearch, rowsQuery, usageFilters } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = texts.usage
const pageSize = 100
const today = () => new Date()

const idOf = ({ day, key, model }: Usage): string => JSON.stringify([day, key, model])

/** `/usage`: what was charged, by day in a chart, by key, model and day in a table. */
export default function UsagePage() {
  const user = viewedUser() ?? ""
  const search = readUsageSearch(today())
  const query = rowsQuery(search)
  const keys = useKeys(user)
  const rows = usePages<Usage>(
    JSON.stringify([user, query]),
    (cursor) =>
      dataOf(
        api.GET("/manage/v1/usage", {
          params: { query: { ...query, ...pageAfter(pageSize, cursor) } }
        })
      ),
    idOf
  )
  const keyName = (id: string | null) => (id === null ? words.noKey : (keys.get(id)?.name ?? id))
  const most = rows.rows.reduce(
    (one, { amount }) => (parseCredits(amount) > parseCredits(one) ? amount : one),
    "0.00"
  )
  return (
    <>
      <PageHeader title={words.title}>
        <CsvLink path="/manage/v1/usage" query={query} />
      </PageHeader>
      <Filters filters={usageFilters([...keys.values()].map(({ id, name }) => [id, name]))} />
      <UsageChart user={user} search={search} />
      <h2>{search.day === undefined ? words.all(search.from, search.to) : words.of(search.day)}</h2>
      {search.day !== undefined && (
        <p>
          <button type="button" class="small" onClick={() => setQuery({ day: "" })}>
            {words.allDays}
          </button>
        </p>
      )}
      <PagedTable
        caption={words.caption}
        columns={usageColumns({ keyName, most, search })}
        pages={rows}
        idOf={idOf}
        empty={
          <Empty title={words.empty}>
            <p>{words.emptyDetail}</p>
          </Empty>
        }
      />
      <p class="faint">{words.dayHelp}</p>
    </>
  )
}
