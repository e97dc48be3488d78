import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { HttpServerRequest } from "effect/http"

/**
 * A free text: quoted by RFC 4180, and with a leading apostrophe if a spreadsheet would read it as a
 * formula (`=`, `+`, `-`, `@`, tab, line break).
 */
export const textCell = (text: string | null): string => {
  if (text === null || text === "") return ""
  const safe = /^[\s]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

/** A CSV file of lines without their ends, streamed while it is read. */
export const csvFile = <E>(
  name: string,
  columns: ReadonlyArray<string>,
  lines: Stream.Stream<string, E>
) =>
  HttpServerResponse.stream(
    Stream.make(columns.join(",")).pipe(
      Stream.concat(lines),
      Stream.map((text) => `${text}\r\n`),
      Stream.grouped(256),
      Stream.map((lines) => lines.join("")),
      Stream.encodeText,
      // The status is already sent: the client sees a failure only by the broken connection
      Stream.tapCause((cause) => Effect.logWarning(`The export ${name} broke off`, cause))
    ),
    {
      contentType: "text/csv; charset=utf-8; header=present",
      headers: {
        "content-disposition": `attachment; filename="${name}.csv"`,
        "cache-control": "no-store"
      }
    }
  )

/** Whether the client asks for a file: by `format`, else by `Accept`. */
export const wantsCsv = (
  format: "json" | "csv" | undefined,
  request: HttpServerRequest.HttpServerRequest
): boolean =>
  format === "csv" ||
  (format === undefined && /\btext\/csv\b/iu.test(request.headers["accept"] ?? ""))
