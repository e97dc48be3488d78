import { api } from "../../api/client.ts"
import { useKeys, useModelNames } from "../../api/lists.ts"
import { usePages } from "../../api/pages.ts"
import type { Schemas } from "../../api/schema.ts"
import type { PageQuery } from "../../api/searchOn.ts"
import { isOverAll } from "../../api/session.ts"
import { Filters } from "../../components/form/Filters.tsx"
import { Segments } from "../../components/form/Segments.tsx"
import { Link } from "../../components/Link.tsx"
import { CsvLink } from "../../components/list/CsvLink.tsx"
import { PagedTable } from "../../components/list/PagedTable.tsx"
import { PageHeader } from "../../components/PageHeader.tsx"
import { parseCredits } from "../../format/credits.ts"
import { dayOf, showDays, showFullDay } from "../../format/days.ts"
import { setQuery, viewedUser } from "../../router/location.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import { UsageChart } from "./UsageChart.tsx"
import { usageColumns } from "./usageColumns.tsx"
import { rangesUpTo, readUsageSearch, rowsQuery, usageFilters } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = usageTexts
/** Limited because the address of each user needs a request. */
const pageSize = 25
const today = () => new Date()

const idOf = ({ day, hour, key, model, user }: Usage): string =>
  JSON.stringify([day, hour, user, key, model])

const timeOf = ({ day, hour }: Usage): string => hour ?? day ?? ""

/** The most expensive rows first or, by time, the latest first. */
const sorted = <Row extends Usage>(rows: ReadonlyArray<Row>, by: string): ReadonlyArray<Row> =>
  [...rows].sort(
    (one, other) =>
      (by.startsWith("day") ? timeOf(other).localeCompare(timeOf(one)) : 0) ||
      Number(parseCredits(other.amount) - parseCredits(one.amount))
  )

/** `/usage`: charges per day in a chart, and by key, model and day in a table. */
export default function UsagePage() {
  const user = viewedUser() ?? ""
  const isOfAll = isOverAll()
  const search = readUsageSearch(today(), isOfAll)
  const query = rowsQuery(search)
  const keys = useKeys(isOfAll ? undefined : user)
  const load = async (page: PageQuery) => {
    const found = await api.GET("/manage/v1/usage", { query: { ...query, ...page } })
    return { ...found, data: Array.from(found.data, (row) => ({ ...row, id: idOf(row) })) }
  }
  const rows = usePages("usage", query, load, pageSize)
  const { models, vendors } = useModelNames()
  const keyName = (id: string | null) => (id === null ? words.noKey : (keys.get(id)?.name ?? id))
  const most = rows.rows.reduce(
    (one, { amount }) => (parseCredits(amount) > parseCredits(one) ? amount : one),
    "0.00"
  )
  return (
    <>
      <PageHeader {...(isOfAll ? { about: words.aboutAll } : {})}>
        <CsvLink path="/manage/v1/usage" query={query} />
      </PageHeader>
      <div class="filter-bar">
        <Segments
          label={words.range}
          value={search.to === dayOf(today()) ? search.from : ""}
          options={rangesUpTo(today())}
          onValue={(from) => setQuery({ from, to: "", day: "" })}
        />
        {isOfAll && (
          <Segments
            label={words.work}
            value={search.filters.sandbox ?? ""}
            options={[
              ["false", words.real],
              ["true", words.simulated]
            ]}
            onValue={(sandbox) => setQuery({ sandbox: sandbox === "false" ? "" : sandbox })}
          />
        )}
        <Filters
          filters={usageFilters(
            isOfAll ? undefined : [...keys.values()].map(({ id, name }) => [id, name]),
            models,
            vendors
          ).filter(({ name }) => !isOfAll || name !== "sandbox")}
        />
      </div>
      <UsageChart user={user} search={search} keyName={keyName} />
      <div class="table-head">
        <h2>
          {search.day === undefined
            ? showDays(search.from, search.to)
            : words.of(showFullDay(search.day))}
        </h2>
        {search.day !== undefined && (
          <button type="button" class="small" onClick={() => setQuery({ day: "" })}>
            {words.allDays}
          </button>
        )}
      </div>
      <PagedTable
        words={words}
        columns={usageColumns({ keyName, most, search, rows: rows.rows })}
        pages={{ ...rows, rows: sorted(rows.rows, search.by) }}
      />
      <p class="faint">{words.dayHelp}</p>
      {isOfAll && (
        <p class="faint">
          {words.margin} <Link to="/bills">{words.compare}</Link>.
        </p>
      )}
    </>
  )
}
