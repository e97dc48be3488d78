import { DateTime, Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import * as Credits from "../../domain/Credits.ts"
import type { EntryRow } from "../../wallet/Wallet.ts"

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

/**
 * A free text: quoted by RFC 4180, and with a leading apostrophe if a spreadsheet would read it as a
 * formula (`=`, `+`, `-`, `@`, tab, line break).
 */
const textCell = (text: string | null): string => {
  if (text === null || text === "") return ""
  const safe = /^[\s]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

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

/** The ledger as a CSV file, streamed while it is read. */
export const csvResponse = <E>(entries: Stream.Stream<EntryRow, E>) =>
  HttpServerResponse.stream(
    Stream.make(columns.join(",")).pipe(
      Stream.concat(Stream.map(entries, line)),
      Stream.map((text) => `${text}\r\n`),
      Stream.grouped(256),
      Stream.map((lines) => lines.join("")),
      Stream.encodeText,
      // The status is already sent: the client sees a failure only by the broken connection
      Stream.tapCause((cause) => Effect.logWarning("A ledger export broke off", cause))
    ),
    {
      contentType: "text/csv; charset=utf-8; header=present",
      headers: {
        "content-disposition": 'attachment; filename="wallet-entries.csv"',
        "cache-control": "no-store"
      }
    }
  )
