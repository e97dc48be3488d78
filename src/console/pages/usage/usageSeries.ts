import type { Schemas } from "../../api/schema.ts"
import { parseCredits, showCredits, sumCredits } from "../../format/credits.ts"
import { daysBetween, hoursBetween, showDay, showHour } from "../../format/days.ts"
import { usageTexts } from "../../texts/en/usage.ts"
import type { Measure, UsageSearch } from "./usageSearch.ts"

type Usage = Schemas["Usage"]

const words = usageTexts
/** The most days in the chart; the table shows all. */
const daysAtMost = 92
/** The most models or keys with a separate color; the others share one. */
const seriesAtMost = 5

export const requestsOf = ({ calls, tasks }: Usage): number => tasks + calls
export const tokensOf = ({ units }: Usage): number => units.input_tokens + units.output_tokens
export const resultsOf = ({ units }: Usage): number => units.images + units.videos + units.audios

const countOf: Readonly<Record<Exclude<Measure, "amount" | "duration">, (row: Usage) => number>> = {
  requests: requestsOf,
  errors: ({ errors }) => errors,
  tokens: tokensOf,
  results: resultsOf
}

/** The total of the rows as a decimal text. Durations have no total. */
export const totalOf = (
  rows: ReadonlyArray<Usage>,
  measure: Exclude<Measure, "duration">
): string =>
  measure === "amount"
    ? sumCredits(rows.map(({ amount }) => amount))
    : String(rows.reduce((sum, row) => sum + countOf[measure](row), 0))

export const showTotal = (total: string, measure: Measure): string =>
  measure === "amount" ? showCredits(total) : Number(total).toLocaleString("en")

/** The days or hours of a search, in order, without hours in the future. */
export const placesOf = ({ from, per, to }: UsageSearch, now: Date) =>
  per === "hour"
    ? hoursBetween(from, to, now).map((hour) => ({
        id: hour,
        label: showHour(hour),
        day: hour.slice(0, 10)
      }))
    : daysBetween(from, to, daysAtMost).map((day) => ({ id: day, label: showDay(day), day }))

/** A model or a key with its rows. */
export interface Series {
  readonly name: string
  readonly tone: number
  readonly rows: ReadonlyArray<Usage>
}

/** The largest series first. Those without a color are combined at the end. */
export const seriesOf = (
  rows: ReadonlyArray<Usage>,
  nameOf: (row: Usage) => string,
  measure: Measure
): ReadonlyArray<Series> => {
  const weight = measure === "duration" ? "requests" : measure
  const named = [...Map.groupBy(rows, nameOf)]
    .map(([name, own]) => ({ name, rows: own, total: parseCredits(totalOf(own, weight)) }))
    .filter(({ total }) => total > 0n)
    .sort((one, other) => Number(other.total - one.total))
  const rest = named.slice(seriesAtMost).flatMap((it) => it.rows)
  return [
    ...named
      .slice(0, seriesAtMost)
      .map((it, index) => ({ name: it.name, rows: it.rows, tone: index + 1 })),
    // Percentiles of several models cannot be added
    ...(rest.length > 0 && measure !== "duration"
      ? [{ name: words.other, rows: rest, tone: 0 }]
      : [])
  ]
}

/** The rows by the id of their place. */
export const byPlace = (rows: ReadonlyArray<Usage>): ReadonlyMap<string, ReadonlyArray<Usage>> =>
  Map.groupBy(rows, ({ day, hour }) => hour ?? day ?? "")
