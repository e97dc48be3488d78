import { Result } from "effect"
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

/** 1 US dollar is 100 credits. */
const decimalsOfDollar = 8

const dollars = (text: string): Credits.Credits | undefined => {
  // Floating point of small amounts: 1.2e-05
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

/** Unix seconds, or ISO 8601. */
const timeOf = (text: string): number =>
  /^\d{10}$/u.test(text) ? Number(text) * 1000 : Date.parse(text)

/** Reads a bill as CSV (RFC 4180) in US dollars, with a first line of names. Fails with what is wrong. */
export const parseBill = (
  text: string,
  { modelOf, names: columns }: ReturnType<typeof billFormat>
): Result.Result<ReadonlyArray<BillLine>, string> => {
  const [names = [], ...records] = recordsOf(text)
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
    if (at[name] < 0) return Result.fail(`The bill has no column ${columns[name].join(" or ")}`)
  }
  const lines: Array<BillLine> = []
  for (const [index, record] of records.entries()) {
    const amount = dollars(record[at.amount] ?? "")
    const time = timeOf((record[at.date] ?? "").trim())
    if (amount === undefined) return Result.fail(`Line ${index + 2}: no amount in US dollars`)
    if (Number.isNaN(time)) return Result.fail(`Line ${index + 2}: no date`)
    const id = at.id < 0 ? "" : (record[at.id] ?? "").trim()
    lines.push({
      id: id === "" ? null : id,
      model: modelOf(record[at.model] ?? ""),
      day: new Date(time).toISOString().slice(0, 10),
      amount
    })
  }
  return Result.succeed(lines)
}

/** The records of a CSV text; empty lines are left out. */
const recordsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const records: Array<ReadonlyArray<string>> = []
  let record: Array<string> = []
  const end = () => {
    if (record.some((cell) => cell !== "")) records.push(record)
    record = []
  }
  for (const [, quoted, plain = "", separator] of text
    .replace(/^\uFEFF/u, "")
    .matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gu)) {
    record.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (separator !== ",") end()
  }
  return records
}
