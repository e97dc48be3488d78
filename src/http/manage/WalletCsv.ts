import { DateTime, Stream } from "effect"
import * as Credits from "../../domain/Credits.ts"
import type { EntryRow } from "../../wallet/Wallet.ts"
import { csvFile, textCell } from "./Csv.ts"

const columns = [
  "seq",
  "created_at",
  "kind",
  "amount",
  "settled_after",
  "held_after",
  "task_id",
  "note",
  "trace_id"
]

const line = (row: EntryRow): string =>
  [
    String(row.seq),
    DateTime.formatIso(row.createdAt),
    row.kind,
    Credits.format(row.amount),
    Credits.format(row.settledAfter),
    Credits.format(row.heldAfter),
    row.subjectId ?? "",
    textCell(row.note),
    row.traceId ?? ""
  ].join(",")

/** The ledger as a CSV file. */
export const csvResponse = <E>(entries: Stream.Stream<EntryRow, E>) =>
  csvFile("wallet-entries", columns, Stream.map(entries, line))
