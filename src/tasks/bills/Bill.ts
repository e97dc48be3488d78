import { Result } from "effect"
import * as Credits from "../../domain/Credits.ts"

/** A line of a vendor's bill. */
export interface BillLine {
  /** The vendor's id of the job or the request. */
  readonly id: string | null
  readonly model: string
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string
  readonly amount: Credits.Credits
}

/** The names of a bill's columns. */
export interface BillColumns {
  readonly id: string
  readonly model: string
  readonly date: string
  readonly amount: string
}

/** 1 US dollar is 100 credits. */
const decimalsOfDollar = 8

const dollars = (text: string): Credits.Credits | undefined => {
  const match = /^(-?)\$?(\d{1,9})(?:\.(\d{1,18}))?$/u.exec(text.trim())
  if (match === null) return undefined
  const fraction = (match[3] ?? "").padEnd(decimalsOfDollar, "0").slice(0, decimalsOfDollar)
  const micro = BigInt(`${match[2]}${fraction}`)
  return Credits.make(match[1] === "-" ? -micro : micro)
}

/** Reads a bill as CSV (RFC 4180) in US dollars, with a first line of names. Fails with what is wrong. */
export const parseBill = (
  text: string,
  columns: BillColumns
): Result.Result<ReadonlyArray<BillLine>, string> => {
  const [names = [], ...records] = recordsOf(text)
  const place = (name: string) => names.findIndex((it) => it.trim() === name)
  const at = {
    id: place(columns.id),
    model: place(columns.model),
    date: place(columns.date),
    amount: place(columns.amount)
  }
  for (const name of ["model", "date", "amount"] as const) {
    if (at[name] < 0) return Result.fail(`The bill has no column ${columns[name]}`)
  }
  const lines: Array<BillLine> = []
  for (const [index, record] of records.entries()) {
    const amount = dollars(record[at.amount] ?? "")
    const time = Date.parse(record[at.date] ?? "")
    if (amount === undefined) return Result.fail(`Line ${index + 2}: no amount in US dollars`)
    if (Number.isNaN(time)) return Result.fail(`Line ${index + 2}: no date`)
    const id = at.id < 0 ? "" : (record[at.id] ?? "").trim()
    lines.push({
      id: id === "" ? null : id,
      model: record[at.model] ?? "",
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
