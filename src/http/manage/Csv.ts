import { Effect, Stream } from "effect"
import { Csv } from "effect/encoding"
import { HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"

/**
 * A free text, with a leading apostrophe if a spreadsheet would read it as a formula (`=`, `+`, `-`, `@`, tab, line
 * break).
 */
export const textCell = (text: string | null): string =>
  text !== null && /^[\s]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : (text ?? "")

/** `?format=csv`, or `Accept: text/csv` without a format. */
export const wantsCsv = (
  format: "json" | "csv" | undefined,
  request: HttpServerRequest.HttpServerRequest
): boolean =>
  format === "csv" ||
  (format === undefined && /\btext\/csv\b/iu.test(request.headers["accept"] ?? ""))

/** Rows as a CSV file, streamed while they are read. */
export const csvResponse = <Row, E>(
  filename: string,
  columns: ReadonlyArray<string>,
  rows: Stream.Stream<Row, E>,
  line: (row: Row) => ReadonlyArray<string>
) =>
  HttpServerResponse.stream(
    Stream.make(columns).pipe(
      Stream.concat(Stream.map(rows, line)),
      Stream.pipeThroughChannel(Csv.encodeString()),
      Stream.grouped(256),
      Stream.map((lines) => lines.join("")),
      Stream.encodeText,
      // The status is already sent: the client sees a failure only by the broken connection
      Stream.tapCause((cause) => Effect.logWarning(`The export ${filename} broke off`, cause))
    ),
    {
      contentType: "text/csv; charset=utf-8; header=present",
      headers: {
        "content-disposition": `attachment; filename="${filename}"`,
        "cache-control": "no-store"
      }
    }
  )
