import { api, dataOf } from "../../api/client.ts"
import { pageAfter, readAll } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { BarChart } from "../../components/BarChart.tsx"
import { Segments } from "../../components/Segments.tsx"
import { Loaded } from "../../components/States.tsx"
import { Tile, Tiles } from "../../components/Tiles.tsx"
import { showCredits, sumCredits } from "../../format/credits.ts"
import { daysBetween } from "../../format/time.ts"
import { location, setQuery } from "../../router/location.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import { measures } from "./usageSearch.ts"
import type { Measure, UsageSearch } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = usageTexts
/** More bars than these nobody reads; the table has all. */
const barsAtMost = 92

interface Props {
  readonly user: string
  readonly search: UsageSearch
}

/** A bar a day. It leads to the rows of its day, and once more back to those of all. */
export const UsageChart = ({ search, user }: Props) => {
  const { filters, from, to } = search
  const usage = useResource(JSON.stringify([user, filters, from, to]), () =>
    readAll((cursor) =>
      dataOf(
        api.GET("/manage/v1/usage", {
          params: { query: { ...filters, from, to, group_by: "day", ...pageAfter(100, cursor) } }
        })
      )
    )
  )
  return <Loaded of={usage}>{(rows) => <Days rows={rows} search={search} />}</Loaded>
}

interface DaysProps {
  readonly rows: ReadonlyArray<Usage>
  readonly search: UsageSearch
}

const Days = ({ rows, search: { day, from, measure, to } }: DaysProps) => {
  const byDay = new Map(rows.map((row) => [row.day ?? "", row]))
  const days = daysBetween(from, to, barsAtMost)
  const amounts = days.map((it) => amountOf(byDay.get(it), measure))
  const query = Object.fromEntries(location.value.query)
  return (
    <>
      <Totals rows={rows} />
      <div class="chart-head">
        <Segments
          label={words.measure}
          value={measure}
          options={measures.map((it) => [it, words.measures[it]])}
          onValue={(it) => setQuery({ measure: it === "amount" ? "" : it })}
        />
      </div>
      <BarChart
        title={words.chart(words.measures[measure])}
        bars={days.map((it, index) => ({
          label: it,
          value: shownAmount(amounts[index] ?? "0", measure),
          length: Number(amounts[index] ?? "0"),
          isCurrent: it === day,
          to: { path: "/usage", query: { ...query, day: it === day ? "" : it } }
        }))}
      />
    </>
  )
}

/** Counts are whole numbers, which are amounts too. */
const amountOf = (row: Usage | undefined, measure: Measure): string => {
  if (row === undefined) return "0"
  return measure === "amount" || measure === "tasks" || measure === "calls"
    ? String(row[measure])
    : String(row.units[measure])
}

const shownAmount = (amount: string, measure: Measure): string =>
  measure === "amount" ? showCredits(amount) : Number(amount).toLocaleString("en")

const Totals = ({ rows }: { readonly rows: ReadonlyArray<Usage> }) => {
  const sum = (of: (row: Usage) => number) =>
    rows.reduce((total, row) => total + of(row), 0).toLocaleString("en")
  return (
    <Tiles>
      <Tile name={words.measures.amount}>
        {showCredits(sumCredits(rows.map(({ amount }) => amount)))}
      </Tile>
      <Tile name={words.requests}>{sum((row) => row.tasks + row.calls)}</Tile>
      <Tile name={words.tokens}>
        {sum(({ units }) => units.input_tokens + units.output_tokens)}
      </Tile>
      <Tile name={words.results}>
        {sum(({ units }) => units.images + units.videos + units.audios)}
      </Tile>
    </Tiles>
  )
}
