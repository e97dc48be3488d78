import { Schema } from "effect"
import { sourceCharactersMax } from "../domain/limits/Limits.ts"
import { PathSegment } from "./PathSegment.ts"

/** A day that begins at 00:00 UTC. */
export const Day = Schema.String.check(
  Schema.makeFilter<string>(
    (text) =>
      (/^\d{4}-\d{2}-\d{2}$/u.test(text) &&
        !Number.isNaN(Date.parse(text)) &&
        new Date(text).toISOString().startsWith(text)) ||
      "Expected a day as YYYY-MM-DD"
  )
)

const Source = Schema.NonEmptyString.check(Schema.isMaxLength(sourceCharactersMax))

/** When a model is sold, its vendor's announcements, and the source of its price. */
const rowFields = {
  /** The first day on which it is sold, if there is one. */
  validFrom: Schema.optionalKey(Day),
  /** The first day without a price. */
  validUntil: Schema.optionalKey(Day),
  /** The day from which the vendor advises against the model. If absent, the day of its sunset. */
  deprecation: Schema.optionalKey(Day),
  /** The day on which the vendor ends the model. */
  sunset: Schema.optionalKey(Day),
  /** The model that the vendor recommends instead. */
  replacement: Schema.optionalKey(PathSegment),
  /** Where and when the price was read. */
  source: Schema.optionalKey(Source)
}

/** The fields of a price row, including prices that replace `price` from a given day on. docs/catalog.md#price-rows */
export const priceRowFields = <P extends Schema.Constraint>(price: P) => ({
  ...rowFields,
  laterPrices: Schema.optionalKey(
    Schema.Array(Schema.Struct({ from: Day, price, source: Schema.optionalKey(Source) }))
  )
})

/** A model with its prices. */
export interface PriceRow<P> {
  readonly price: P
  readonly laterPrices?: ReadonlyArray<{
    readonly from: string
    readonly price: P
    readonly source?: string
  }>
  readonly validFrom?: string
  readonly validUntil?: string
  readonly deprecation?: string
  readonly sunset?: string
  readonly replacement?: string
  readonly source?: string
}

export interface PricePeriod<P> {
  /** The first day, or `null` if there is none. */
  readonly from: string | null
  /** The day on which the next period begins or the model loses its price. */
  readonly until: string | null
  readonly price: P
  readonly source: string | null
}

/** The prices of a model in chronological order. */
export const pricePeriods = <P>(row: PriceRow<P>): ReadonlyArray<PricePeriod<P>> => {
  const later = (row.laterPrices ?? []).toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from))
  const first = { from: row.validFrom ?? null, price: row.price, source: row.source }
  return [first, ...later].map(({ from, price, source }, index) => ({
    from,
    until: later[index]?.from ?? row.validUntil ?? null,
    price,
    source: source ?? null
  }))
}

/** The price of work that begins now; `undefined` if the model has none and is not sold. */
export const priceAt = <P>(row: PriceRow<P>, nowMillis: number): P | undefined => {
  const { laterPrices, price, validFrom, validUntil } = row
  if (laterPrices === undefined && validFrom === undefined && validUntil === undefined) return price
  return pricePeriods(row).find(
    ({ from, until }) =>
      (from === null || Date.parse(from) <= nowMillis) &&
      (until === null || nowMillis < Date.parse(until))
  )?.price
}

/** Faults in the order of a row's days, with their fields. */
export const orderFaults = (
  row: Omit<PriceRow<unknown>, "price">
): ReadonlyArray<{ readonly field: string; readonly detail: string }> => {
  const froms = (row.laterPrices ?? []).map(({ from }) => from).toSorted()
  const [first] = froms
  const last = froms.at(-1) ?? row.validFrom
  const isBefore = (a: string | undefined, b: string | undefined) =>
    a === undefined || b === undefined || a < b
  return [
    ...(isBefore(row.validFrom, first) && new Set(froms).size === froms.length
      ? []
      : [{ field: "laterPrices", detail: "Expected days after validFrom, each once" }]),
    ...(isBefore(last, row.validUntil)
      ? []
      : [{ field: "validUntil", detail: "Expected a day after the last price begins" }]),
    ...(row.deprecation === undefined || row.deprecation <= (row.sunset ?? "")
      ? []
      : [{ field: "deprecation", detail: "Expected a sunset, and a day that is not after it" }])
  ]
}

/** Header values for a model that its vendor is ending. RFC 9745, RFC 8594. */
export interface Ending {
  readonly deprecation: string
  readonly sunset: string
}

const endings = new WeakMap<object, Ending>()

/** Built once per row, because every response of the model has these headers. */
export const endingOf = (row: Omit<PriceRow<unknown>, "price">): Ending | undefined => {
  const { deprecation, sunset } = row
  if (sunset === undefined) return undefined
  const known = endings.get(row)
  if (known !== undefined) return known
  const ending = {
    deprecation: `@${Date.parse(deprecation ?? sunset) / 1000}`,
    sunset: new Date(sunset).toUTCString()
  }
  endings.set(row, ending)
  return ending
}
