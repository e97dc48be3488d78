import { api, dataOf } from "../../api/client.ts"
import { pageAfter, useKeys, useModelNames } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import { CsvLink } from "../../components/CsvLink.tsx"
import { Filters } from "../../components/Filters.tsx"
import { PagedTable } from "../../components/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { Segments } from "../../components/Segments.tsx"
import { Empty } from "../../components/States.tsx"
import { parseCredits } from "../../format/credits.ts"
import { dayOf } from "../../format/time.ts"
import { setQuery, viewedUser } from "../../router/location.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import { UsageChart } from "./UsageChart.tsx"
import { usageColumns } from "./usageColumns.tsx"
import { rangesUpTo, readUsageSearch, rowsQuery, usageFilters } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = usageTexts
const pageSize = 100
const today = () => new Date()

const idOf = ({ day, hour, key, model }: Usage): string => JSON.stringify([day, hour, key, model])

const timeOf = ({ day, hour }: Usage): string => hour ?? day ?? ""

/** The most expensive first, or by time, the latest first. */
const sorted = (rows: ReadonlyArray<Usage>, by: string): ReadonlyArray<Usage> =>
  [...rows].sort(
    (one, other) =>
      (by.startsWith("day") ? timeOf(other).localeCompare(timeOf(one)) : 0) ||
      Number(parseCredits(other.amount) - parseCredits(one.amount))
  )

/** `/usage`: what was charged, by day in a chart, by key, model and day in a table. */
export default function UsagePage() {
  const user = viewedUser() ?? ""
  const search = readUsageSearch(today())
  const query = rowsQuery(search)
  const keys = useKeys(user)
  const rows = usePages<Usage>(
    "usage",
    JSON.stringify([user, query]),
    (cursor) =>
      dataOf(
        api.GET("/manage/v1/usage", {
          params: { query: { ...query, ...pageAfter(pageSize, cursor) } }
        })
      ),
    idOf
  )
  const { models, vendors } = useModelNames()
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
      <div class="filter-bar">
        <Segments
          label={words.range}
          value={search.to === dayOf(today()) ? search.from : ""}
          options={rangesUpTo(today())}
          onValue={(from) => setQuery({ from, to: "", day: "" })}
        />
        <Filters
          filters={usageFilters(
            [...keys.values()].map(({ id, name }) => [id, name]),
            models,
            vendors
          )}
        />
      </div>
      <UsageChart user={user} search={search} keyName={keyName} />
      <div class="table-head">
        <h2>
          {search.day === undefined ? words.all(search.from, search.to) : words.of(search.day)}
        </h2>
        {search.day !== undefined && (
          <button type="button" class="small" onClick={() => setQuery({ day: "" })}>
            {words.allDays}
          </button>
        )}
      </div>
      <PagedTable
        caption={words.caption}
        columns={usageColumns({ keyName, most, search, rows: rows.rows })}
        pages={{ ...rows, rows: sorted(rows.rows, search.by) }}
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
