import { Effect, Stream } from "effect"
import { Csv } from "effect/encoding"
import { HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"

/**
 * A cell with free text. A leading apostrophe is added if a spreadsheet would treat the text as a formula (`=`, `+`,
 * `-`, `@`, tab, line break).
 */
export const textCell = (text: string | null): string =>
  text !== null && /^[\s]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : (text ?? "")

/** Whether the request has `?format=csv` or, without a format, `Accept: text/csv`. */
export const wantsCsv = (
  format: "json" | "csv" | undefined,
  request: HttpServerRequest.HttpServerRequest
): boolean =>
  format === "csv" ||
  (format === undefined && /\btext\/csv\b/iu.test(request.headers["accept"] ?? ""))

/** Streams rows as a CSV file while they are read. */
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
      // The status has already been sent, so the client notices a failure only as a broken connection
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
