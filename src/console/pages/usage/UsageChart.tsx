import { api } from "../../api/client.ts"
import { readAll } from "../../api/lists.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { BarChart } from "../../components/chart/BarChart.tsx"
import { LineChart } from "../../components/chart/LineChart.tsx"
import type { Place } from "../../components/chart/Plot.tsx"
import { Tile, Tiles } from "../../components/chart/Tiles.tsx"
import { Segments } from "../../components/form/Segments.tsx"
import { Loaded, LoadingRows } from "../../components/States.tsx"
import { showAxis } from "../../format/scale.ts"
import { showDuration } from "../../format/time.ts"
import { location, setQuery } from "../../router/location.ts"
import { texts } from "../../texts/en.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import { chartQuery, measures, periods, splitOf } from "./usageSearch.ts"
import type { UsageSearch } from "./usageSearch.ts"
import {
  byPlace,
  placesOf,
  requestsOf,
  resultsOf,
  seriesOf,
  showTotal,
  tokensOf,
  totalOf
} from "./usageSeries.ts"

type Usage = Schemas["Usage"]

const words = usageTexts

interface Props {
  readonly user: string
  readonly search: UsageSearch
  readonly keyName: (id: string | null) => string
}

/**
 * Usage per day or hour, divided by model or key. A click selects the rows of the day; another click shows all rows
 * again.
 */
export const UsageChart = ({ keyName, search, user }: Props) => {
  const query = chartQuery(search)
  const usage = useResource(JSON.stringify([user, query]), () =>
    readAll((page) => api.GET("/manage/v1/usage", { query: { ...query, ...page } }))
  )
  return (
    <>
      <Loaded of={usage} bones={<LoadingRows tiles={3} hasRows={false} />}>
        {(rows) => <Totals rows={rows} />}
      </Loaded>
      <Choices search={search} />
      {(usage.data !== undefined || usage.cause === undefined) && (
        <Loaded
          of={{ ...usage, cause: undefined }}
          bones={<LoadingRows hasChart hasRows={false} />}
        >
          {(rows) =>
            search.measure === "duration" ? (
              <Durations rows={rows} search={search} keyName={keyName} />
            ) : (
              <Bars rows={rows} search={search} keyName={keyName} />
            )
          }
        </Loaded>
      )}
    </>
  )
}

const Choices = ({ search: { by, choices, hasHours, measure, per } }: Pick<Props, "search">) => (
  <div class="chart-head">
    <Segments
      label={words.by}
      isNamed
      value={by}
      options={choices.map((it) => [it, words.groupings[it](words.periods[per])])}
      onValue={(it) => setQuery({ by: it === choices[0] ? "" : it })}
    />
    {hasHours && (
      <Segments
        label={words.per}
        isNamed
        value={per}
        options={periods.map((it) => [it, words.periods[it]])}
        onValue={(it) => setQuery({ per: it })}
      />
    )}
    <Segments
      label={words.measure}
      isNamed
      value={measure}
      options={measures.map((it) => [it, words.measures[it]])}
      onValue={(it) => setQuery({ measure: it === "amount" ? "" : it })}
    />
  </div>
)

interface ChartProps extends Omit<Props, "user"> {
  readonly rows: ReadonlyArray<Usage>
}

/** The name of a row's model or key. */
const nameIn =
  ({ keyName, search }: Omit<ChartProps, "rows">) =>
  (row: Usage): string => {
    const split = splitOf(search.by)
    if (split === "key") return keyName(row.key)
    return split === "model" ? (row.model ?? words.noModel) : ""
  }

/** The days or hours, each with its link. */
const linksOf = (search: UsageSearch) => {
  const query = Object.fromEntries(location.value.query)
  return placesOf(search, new Date()).map(({ day, id, label }) => ({
    id,
    label,
    isCurrent: day === search.day,
    to: { path: "/usage", query: { ...query, day: day === search.day ? "" : day } }
  }))
}

const Bars = (props: ChartProps) => {
  const { rows, search } = props
  const { per } = search
  const measure = search.measure === "duration" ? "requests" : search.measure
  const series = seriesOf(rows, nameIn(props), measure).map((it) => ({
    name: it.name,
    tone: it.tone,
    at: byPlace(it.rows)
  }))
  const bars = linksOf(search).map(({ id, isCurrent, label, to }) => {
    const parts = series.flatMap(({ at, name, tone }) => {
      const total = totalOf(at.get(id) ?? [], measure)
      const length = Number(total)
      return length > 0 ? [{ name, tone, length, total, value: showTotal(total, measure) }] : []
    })
    const total = totalOf(
      series.flatMap(({ at }) => [...(at.get(id) ?? [])]),
      measure
    )
    return { label, to, isCurrent, parts, value: showTotal(total, measure), length: Number(total) }
  })
  return (
    <BarChart
      title={words.chart(words.measures[measure], words.periods[per])}
      bars={bars}
      legend={series}
    />
  )
}

const showMillis = (value: number | null): string =>
  value === null ? texts.none : showDuration(value)

/**
 * Without a division, the median and a high percentile of all requests; otherwise the high percentile of each model or
 * key.
 */
const Durations = (props: ChartProps) => {
  const { rows, search } = props
  const places = linksOf(search)
  const isDivided = splitOf(search.by) !== undefined
  const lines = isDivided
    ? seriesOf(rows, nameIn(props), "duration").map(({ name, rows: own, tone }) => {
        const at = byPlace(own)
        return { name, tone, values: places.map(({ id }) => at.get(id)?.[0]?.p95_ms ?? null) }
      })
    : percentilesOf(rows, places)
  const named = places.map(({ isCurrent, label, to }, index): Place => {
    const parts = lines.flatMap(({ name, tone, values }) => {
      const value = values[index] ?? null
      return value === null ? [] : [{ name, tone, length: value, value: showMillis(value) }]
    })
    const slowest = Math.max(...parts.map(({ length }) => length))
    return { label, to, isCurrent, parts, value: showMillis(parts.length === 0 ? null : slowest) }
  })
  const per = words.periods[search.per]
  return (
    <LineChart
      title={isDivided ? words.durationsBy(per) : words.durations(per)}
      places={named}
      lines={lines}
      showValue={(value) =>
        value < 1000 ? `${showAxis(value)} ms` : `${showAxis(value / 1000)} s`
      }
    />
  )
}

const percentilesOf = (
  rows: ReadonlyArray<Usage>,
  places: ReadonlyArray<{ readonly id: string }>
) => {
  const at = byPlace(rows)
  const valuesOf = (of: (row: Usage) => number | null) =>
    places.map(({ id }) => {
      const row = at.get(id)?.[0]
      return row === undefined ? null : of(row)
    })
  return [
    { name: words.half, tone: 1, values: valuesOf((row) => row.p50_ms) },
    { name: words.most, tone: 2, values: valuesOf((row) => row.p95_ms) }
  ]
}

const Totals = ({ rows }: { readonly rows: ReadonlyArray<Usage> }) => {
  const sum = (of: (row: Usage) => number) => rows.reduce((total, row) => total + of(row), 0)
  const errors = sum((row) => row.errors)
  // A failed task that was charged counts as a request and as an error
  const all = Math.max(errors, sum(requestsOf) + errors)
  const share = (errors / Math.max(1, all)).toLocaleString("en", {
    style: "percent",
    maximumSignificantDigits: 2
  })
  const counts = [
    [words.measures.tokens, sum(tokensOf)],
    [words.measures.results, sum(resultsOf)]
  ] as const
  return (
    <Tiles>
      <Tile name={words.measures.amount}>{showTotal(totalOf(rows, "amount"), "amount")}</Tile>
      <Tile name={words.requests}>{sum(requestsOf).toLocaleString("en")}</Tile>
      <Tile name={words.measures.errors} isBad={errors > 0} note={words.errorShare(share)}>
        {errors.toLocaleString("en")}
      </Tile>
      {counts
        .filter(([, count]) => count > 0)
        .map(([name, count]) => (
          <Tile key={name} name={name}>
            {count.toLocaleString("en")}
          </Tile>
        ))}
    </Tiles>
  )
}
