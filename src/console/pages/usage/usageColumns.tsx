import { api } from "../../api/client.ts"
import { useResource } from "../../api/resource.ts"
import type { Schemas } from "../../api/schema.ts"
import { Share } from "../../components/chart/Share.tsx"
import { Link } from "../../components/Link.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { Credits, None } from "../../components/Values.tsx"
import { shareOfCredits, showCredits } from "../../format/credits.ts"
import { dayAfter, hourAfter, showFullDay, showHour } from "../../format/days.ts"
import { showDuration } from "../../format/time.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import type { UsageSearch } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = usageTexts

interface Shown {
  readonly search: UsageSearch
  readonly keyName: (id: string | null) => string
  readonly rows: ReadonlyArray<Usage>
  /** The largest amount of all rows. */
  readonly most: string
}

/** A column of counts; hidden if all are zero. */
const countsIn =
  (rows: ReadonlyArray<Usage>) =>
  (
    name: string,
    of: (row: Usage) => number,
    cell: Column<Usage>["cell"] = (row) => of(row).toLocaleString("en")
  ): ReadonlyArray<Column<Usage>> =>
    rows.some((row) => of(row) > 0) ? [{ title: name, isNumber: true, cell }] : []

/** A column of durations; hidden if there are none. */
const durationsIn =
  (rows: ReadonlyArray<Usage>) =>
  (name: string, of: (row: Usage) => number | null): ReadonlyArray<Column<Usage>> => {
    const cell = (row: Usage) => {
      const value = of(row)
      return value === null ? <None /> : showDuration(value)
    }
    return rows.some((row) => of(row) !== null) ? [{ title: name, isNumber: true, cell }] : []
  }

/** The grouping columns, followed by the sums. */
export const usageColumns = ({
  keyName,
  most,
  rows,
  search
}: Shown): ReadonlyArray<Column<Usage>> => {
  const groups: Record<string, Column<Usage>> = {
    day: {
      title: words.periods[search.per],
      isPlain: true,
      cell: ({ day, hour }) => {
        if (hour !== null) return showHour(hour)
        return day === null ? <None /> : showFullDay(day)
      }
    },
    key: { title: words.key, isPlain: true, cell: ({ key }) => keyName(key) },
    user: { title: words.user, isPlain: true, cell: ({ user }) => <UserName id={user} /> },
    model: {
      title: filterTexts.model,
      isPlain: true,
      cell: ({ model }) => model ?? words.noModel
    }
  }
  const counts = countsIn(rows)
  const durations = durationsIn(rows)
  // Tasks and calls can only be listed for a single user
  const hasLists = !search.isOfAll || search.by.includes("user")
  const listed = (of: "calls" | "tasks") => (row: Usage) =>
    hasLists && row[of] > 0 ? (
      <Link to={`/${of}`} query={listQuery(row, search)}>
        {row[of].toLocaleString("en")}
        <span class="hidden"> {words.columns[of].toLowerCase()}</span>
      </Link>
    ) : (
      row[of].toLocaleString("en")
    )
  return [
    ...search.by.split(",").flatMap((name) => groups[name] ?? []),
    {
      title: words.measures.amount,
      isNumber: true,
      cell: ({ amount }) => (
        <>
          <Credits amount={amount} />
          <Share name={showCredits(amount)} share={shareOfCredits(amount, most)} />
        </>
      )
    },
    ...counts(words.columns.tasks, ({ tasks }) => tasks, listed("tasks")),
    ...counts(words.columns.calls, ({ calls }) => calls, listed("calls")),
    ...counts(words.columns.input_tokens, ({ units }) => units.input_tokens),
    ...counts(words.cached, ({ units }) => units.input_cached_tokens),
    ...counts(words.columns.output_tokens, ({ units }) => units.output_tokens),
    ...counts(words.columns.images, ({ units }) => units.images),
    ...counts(words.columns.videos, ({ units }) => units.videos),
    ...counts(words.seconds, ({ units }) => units.seconds),
    ...counts(words.columns.audios, ({ units }) => units.audios),
    ...counts(words.measures.errors, ({ errors }) => errors),
    ...durations(words.half, (row) => row.p50_ms),
    ...durations(words.most, (row) => row.p95_ms)
  ]
}

/** The user's address. The user may have been deleted. */
const UserName = ({ id }: { readonly id: string | null }) => {
  const { data } = useResource(`user ${id}`, async () =>
    id === null ? undefined : await api.GET("/manage/v1/users/{id}", { path: { id } })
  )
  return id === null ? <None /> : <Link to={`/users/${id}`}>{data?.email ?? id}</Link>
}

/** The filters that list what a sum consists of. */
const listQuery = (row: Usage, search: UsageSearch) => {
  const day = row.hour?.slice(0, 10) ?? row.day ?? search.day
  const from = day ?? search.from
  const to = day ?? search.to
  return {
    user_id: row.user ?? undefined,
    api_key_id: row.key ?? search.filters.api_key_id,
    model: row.model ?? search.filters.model,
    vendor: search.filters.vendor,
    since: row.hour ?? `${from}T00:00:00.000Z`,
    until: row.hour === null ? `${dayAfter(to, 1)}T00:00:00.000Z` : hourAfter(row.hour)
  }
}
