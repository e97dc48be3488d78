import { CliOutput } from "effect/cli"

export interface Column<Row> {
  readonly title: string
  readonly of: (row: Row) => string | number | boolean | null | undefined
  /** Numbers and amounts. */
  readonly isRight?: boolean
}

/** Without characters that move the cursor, color the terminal or start a line. */
export const plainText = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")

/** A value as `plainText`, or a dash if it is absent. */
export const plain = (value: string | number | boolean | null | undefined): string =>
  value === null || value === undefined || value === "" ? "-" : plainText(String(value))

const padded = (text: string, width: number, isRight = false): string => {
  const space = " ".repeat(Math.max(0, width - CliOutput.displayWidth(text)))
  return isRight ? space + text : text + space
}

/** Rows under titles; columns as wide as their longest cell, two spaces apart. */
export const table = <Row>(
  rows: ReadonlyArray<Row>,
  columns: ReadonlyArray<Column<Row>>
): string => {
  const lines = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map(({ of }) => plain(of(row))))
  ]
  const widths = columns.map((_, at) =>
    Math.max(...lines.map((line) => CliOutput.displayWidth(line[at] ?? "")))
  )
  return lines
    .map((line) =>
      line
        .map((text, at) => padded(text, widths[at] ?? 0, columns[at]?.isRight))
        .join("  ")
        .trimEnd()
    )
    .join("\n")
}

/** Names and values of one object, one per line. */
export const details = (
  pairs: ReadonlyArray<readonly [name: string, value: string | number | boolean | null | undefined]>
): string => {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${plain(value)}`).join("\n")
}
