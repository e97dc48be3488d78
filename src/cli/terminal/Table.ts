import { CliOutput } from "effect/cli"

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | number | boolean | null | undefined
  /** Aligns numbers and amounts to the right. */
  readonly isRight?: boolean
}

/** Removes characters that move the cursor, color the terminal or start a line. */
export const plainText = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")

/** A value as `plainText`, or a dash if it is absent. */
export const plain = (value: string | number | boolean | null | undefined): string =>
  value === null || value === undefined || value === "" ? "-" : plainText(String(value))

const padded = (text: string, width: number, isRight = false): string => {
  const space = " ".repeat(Math.max(0, width - CliOutput.displayWidth(text)))
  return isRight ? space + text : text + space
}

/** The width of a line. Terminals are assumed to be at least this wide. */
const lineMax = 80
const gap = "  "

/** Distributes columns to lines, as many per line as fit. Lines after the first are indented. */
const fold = (widths: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<number>> => {
  const lines: Array<Array<number>> = []
  let left = 0
  for (const [at, width] of widths.entries()) {
    const line = lines.at(-1)
    left -= gap.length + width
    if (line !== undefined && left >= 0) line.push(at)
    else {
      left = lineMax - width - (lines.length === 0 ? 0 : gap.length)
      lines.push([at])
    }
  }
  return lines
}

/**
 * A table: rows under titles, with columns as wide as their longest cell and two spaces apart. A row wider than a
 * terminal takes several lines, so nothing is cut off.
 */
export const table = <Row>(
  rows: ReadonlyArray<Row>,
  columns: ReadonlyArray<Column<Row>>
): string => {
  const cells = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map(({ of }) => plain(of(row))))
  ]
  const widths = columns.map((_, at) =>
    Math.max(...cells.map((row) => CliOutput.displayWidth(row[at] ?? "")))
  )
  const lines = fold(widths)
  return cells
    .flatMap((row) =>
      lines.map((line, n) => {
        const texts = line.map((at) => padded(row[at] ?? "", widths[at] ?? 0, columns[at]?.isRight))
        return `${n === 0 ? "" : gap}${texts.join(gap)}`.trimEnd()
      })
    )
    .filter((line) => line !== "")
    .join("\n")
}

/** Names and values of one object, one per line. */
export const details = (
  pairs: ReadonlyArray<readonly [name: string, value: string | number | boolean | null | undefined]>
): string => {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`).join("\n")
}
