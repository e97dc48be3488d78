import { filterValues } from "../../components/form/Filters.tsx"
import type { Filter } from "../../components/form/Filters.tsx"
import { dayAfter, dayOf, daysBetween, isDay } from "../../format/days.ts"
import { texts } from "../../texts/en.ts"
import { filterTexts } from "../../texts/en/filters.ts"
import { usageTexts } from "../../texts/en/usage.ts"

const words = usageTexts

/** What rows are grouped by, as in `group_by`. */
export const groupings = ["model", "key", "day", "key,model", "day,model", "day,key"] as const

/** The groupings of an operator who sees all users. */
export const groupingsOfAll = [
  "user",
  "model",
  "day",
  "user,model",
  "day,model",
  "day,user"
] as const
type Grouping = (typeof groupings)[number] | (typeof groupingsOfAll)[number]

export const measures = ["amount", "requests", "errors", "duration", "tokens", "results"] as const
export type Measure = (typeof measures)[number]

/** The period that one bar of the chart covers. */
export const periods = ["hour", "day"] as const

/** The most days for which the API returns rows by hour. */
const hoursDaysMax = 8
/** Searches of up to this many days start with hours. */
const hoursDaysFirst = 2

const sandboxes = ["true", "false"] as const

/** The number of days of the default search, including today. */
const defaultDays = 30

/** Ranges that end today, by their first day. */
export const rangesUpTo = (now: Date): ReadonlyArray<readonly [from: string, name: string]> => {
  const today = dayOf(now)
  return [
    [today, words.today],
    [dayAfter(today, -6), words.days(7)],
    [dayAfter(today, 1 - defaultDays), words.days(defaultDays)],
    [dayAfter(today, -89), words.days(90)],
    [`${today.slice(0, 8)}01`, words.thisMonth]
  ]
}

/** The search in the address. For the operator simulated work is excluded by default, because it has no cost. */
export const readUsageSearch = (now: Date, isOfAll: boolean) => {
  const {
    by,
    day,
    from,
    measure,
    per,
    sandbox: chosen,
    to
  } = filterValues(["by", "day", "from", "measure", "per", "sandbox", "to"])
  const sandbox = sandboxes.find((it) => it === chosen) ?? (isOfAll ? "false" : undefined)
  const choices: ReadonlyArray<Grouping> = isOfAll ? groupingsOfAll : groupings
  const [first = "model"] = choices
  const last = to !== undefined && isDay(to) ? to : dayOf(now)
  const begin = from !== undefined && isDay(from) ? from : dayAfter(last, 1 - defaultDays)
  const count = daysBetween(begin, last, hoursDaysMax + 1).length
  const period = count <= hoursDaysFirst ? "hour" : "day"
  return {
    from: begin,
    to: last,
    /** The day whose rows are shown; `undefined` shows all days of the search. */
    day: day !== undefined && isDay(day) ? day : undefined,
    isOfAll,
    choices,
    by: choices.find((it) => it === by) ?? first,
    measure: measures.find((it) => it === measure) ?? "amount",
    /** Too many hours could not be read. */
    hasHours: count <= hoursDaysMax,
    per: count > hoursDaysMax ? "day" : (periods.find((it) => it === per) ?? period),
    filters: {
      ...filterValues(["api_key_id", "model", "vendor"]),
      ...(sandbox === undefined ? {} : { sandbox })
    }
  }
}

export type UsageSearch = ReturnType<typeof readUsageSearch>

/** The rows of the table: of the selected day, or of all days. The most expensive come first, unless they are days. */
export const rowsQuery = ({ by, day, filters, from, per, to }: UsageSearch) => ({
  ...filters,
  from: day ?? from,
  to: day ?? to,
  group_by: by.replace("day", per),
  ...(by.startsWith("day") ? {} : { sort: "amount" as const })
})

/** The rows of the chart, divided by model or key. */
export const chartQuery = ({ filters, from, per, to, ...search }: UsageSearch) => {
  const split = splitOf(search.by)
  return { ...filters, from, to, group_by: split === undefined ? per : `${per},${split}` }
}

/** There are too many users for a chart; the table shows them. */
export const splitOf = (by: Grouping): "key" | "model" | undefined => {
  if (by.includes("model")) return "model"
  return by.includes("key") ? "key" : undefined
}

type Options = ReadonlyArray<readonly [value: string, label: string]>

export const usageFilters = (
  keys: Options | undefined,
  models: Options,
  vendors: Options
): ReadonlyArray<Filter> => [
  ...(keys === undefined
    ? []
    : [{ name: "api_key_id", label: words.key, kind: "choice" as const, options: keys }]),
  { name: "model", label: filterTexts.model, kind: "choice", options: models },
  { name: "vendor", label: filterTexts.vendor, kind: "choice", options: vendors },
  { name: "from", label: words.from, kind: "day" },
  { name: "to", label: words.to, kind: "day" },
  {
    name: "sandbox",
    label: texts.sandbox,
    kind: "choice",
    options: [
      ["false", words.real],
      ["true", words.simulated]
    ]
  }
]
