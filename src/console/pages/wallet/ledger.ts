import type { Schemas } from "../../api/schema.ts"
import { parseCredits, showCredits, textOfCredits } from "../../format/credits.ts"

export type Entry = Schemas["WalletEntry"]

/** All entries of a task or call, newest first. Any other entry is a row by itself. */
export interface LedgerRow {
  readonly id: string
  readonly newest: Entry
  readonly entries: ReadonlyArray<Entry>
}

/** One row per task or call, at the place of its newest entry. */
export const rowsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<LedgerRow> => {
  const rows = new Map<string, LedgerRow>()
  for (const entry of entries) {
    const id = entry.task_id ?? String(entry.seq)
    const known = rows.get(id)
    rows.set(id, {
      id,
      newest: known?.newest ?? entry,
      entries: [...(known?.entries ?? []), entry]
    })
  }
  return [...rows.values()]
}

const sumOf = ({ entries }: LedgerRow, ...kinds: ReadonlyArray<Entry["kind"]>): bigint =>
  entries
    .filter(({ kind }) => kinds.includes(kind))
    .reduce((sum, { amount }) => sum + parseCredits(amount), 0n)

/** The kind of a row, given by its most significant entry. */
export const kindOf = ({ entries, newest }: LedgerRow): Entry["kind"] =>
  (["late_charge", "capture", "release"] as const).find((kind) =>
    entries.some((it) => it.kind === kind)
  ) ?? newest.kind

/** The effect of the row on the balance: the charge, the hold, or the deposit. */
export const changeOf = (row: LedgerRow): string => {
  const charged = sumOf(row, "capture", "late_charge")
  const kind = kindOf(row)
  if (kind === "top_up" || kind === "adjustment") return signed(sumOf(row, "top_up", "adjustment"))
  if (kind === "hold") return signed(-sumOf(row, "hold"))
  return kind === "release" ? "" : signed(-charged)
}

const signed = (micro: bigint): string =>
  `${micro > 0n ? "+" : ""}${showCredits(textOfCredits(micro))}`

export const availableAfter = ({ held_after: held, settled_after: settled }: Entry): string =>
  textOfCredits(parseCredits(settled) - parseCredits(held))
