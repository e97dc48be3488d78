import { Effect, Stream } from "effect"
import { Csv } from "effect/encoding"
import * as Credits from "../../domain/Credits.ts"
import type { billFormat } from "./BillFormats.ts"

/** A line of a vendor's bill. */
export interface BillLine {
  /** The vendor's id of the job or the request. */
  readonly id: string | null
  readonly model: string
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string
  readonly amount: Credits.Credits
}

/** Credits are US cents: one dollar is 100 credits. */
const decimalsOfDollar = 8

const dollars = (text: string): Credits.Credits | undefined => {
  // Also reads the exponent notation of small amounts, such as 1.2e-05
  const match = /^(-?)\$?(\d{1,9})(?:\.(\d{1,30}))?(?:e-(\d{1,2}))?$/iu.exec(text.trim())
  if (match === null) return undefined
  const shift = Number(match[4] ?? "0")
  const whole = (match[2] ?? "").padStart(shift + 1, "0")
  const point = whole.length - shift
  const decimals = `${whole.slice(point)}${match[3] ?? ""}`
  const fraction = decimals.padEnd(decimalsOfDollar, "0").slice(0, decimalsOfDollar)
  const micro = BigInt(`${whole.slice(0, point)}${fraction}`)
  return Credits.make(match[1] === "-" ? -micro : micro)
}

/** Parses a bill: CSV (RFC 4180) with a header row and amounts in US dollars. Fails with a description of the fault. */
export const parseBill = Effect.fnUntraced(function* (
  text: string,
  { modelOf, names: columns }: ReturnType<typeof billFormat>
): Effect.fn.Return<ReadonlyArray<BillLine>, string> {
  const [names = [], ...records] = yield* recordsOf(text)
  const header = names.map((it) => it.trim())
  const place = (known: ReadonlyArray<string>) =>
    header.indexOf(known.find((name) => header.includes(name)) ?? "\0")
  const at = {
    id: place(columns.id),
    model: place(columns.model),
    date: place(columns.date),
    amount: place(columns.amount)
  }
  for (const name of ["model", "date", "amount"] as const) {
    if (at[name] < 0) {
      return yield* Effect.fail(`The bill has no column ${columns[name].join(" or ")}`)
    }
  }
  const lines: Array<BillLine> = []
  for (const [index, record] of records.entries()) {
    const amount = dollars(record[at.amount] ?? "")
    const day = dayOf(record[at.date] ?? "")
    const fault = (what: string) => Effect.fail(`Line ${index + 2}: ${what}`)
    if (record.length !== names.length) {
      return yield* fault(`${record.length} cells instead of ${names.length}`)
    }
    if (amount === undefined) return yield* fault("no amount in US dollars")
    if (day === undefined) return yield* fault("no date")
    const id = at.id < 0 ? "" : (record[at.id] ?? "").trim()
    lines.push({
      id: id === "" ? null : id,
      model: modelOf(record[at.model] ?? ""),
      day,
      amount
    })
  }
  return lines
})

/** The records of a CSV text, without empty lines. The request body's limit bounds their number. */
const recordsOf = (text: string): Effect.Effect<ReadonlyArray<Csv.Row>, string> =>
  Stream.make(text).pipe(
    Stream.pipeThroughChannel(Csv.decodeString({ maxRecordSize: Infinity })),
    Stream.filter((record) => record.some((cell) => cell !== "")),
    Stream.runCollect,
    Effect.mapError(({ line }) => `Line ${line} is not valid CSV`)
  )

const isoTime =
  /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|[+-]\d\d:?\d\d)?)?$/u

const dayAt = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** The UTC day of a date, of a time (UTC unless it names a zone), or of Unix seconds. */
const dayOf = (text: string): string | undefined => {
  if (/^\d{10}$/u.test(text.trim())) return dayAt(Number(text) * 1000)
  const match = isoTime.exec(text.trim())
  if (match === null) return undefined
  const [, day, clock = "00:00", zone = "Z"] = match
  const time = Date.parse(`${day}T${clock}${zone === "UTC" ? "Z" : zone}`)
  return Number.isNaN(time) ? undefined : dayAt(time)
}
