import { DateTime } from "effect"
import type { Stream } from "effect"
import * as Credits from "../../../domain/Credits.ts"
import { shownAmount } from "../../../wallet/Wallet.ts"
import type { EntryRow } from "../../../wallet/Wallet.ts"
import { csvResponse, textCell } from "../Csv.ts"

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

const line = (row: EntryRow): ReadonlyArray<string> => [
  String(row.seq),
  DateTime.formatIso(row.createdAt),
  row.kind,
  Credits.format(shownAmount(row)),
  Credits.format(row.settledAfter),
  Credits.format(row.heldAfter),
  row.subjectId ?? "",
  textCell(row.note),
  row.traceId ?? ""
]

/** The ledger as a CSV file. */
export const ledgerCsv = <E>(entries: Stream.Stream<EntryRow, E>) =>
  csvResponse("wallet-entries.csv", columns, entries, line)
