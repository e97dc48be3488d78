import { Duration, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { eventStreamHeartbeatSeconds } from "../../domain/limits/Limits.ts"

const qualityOf = (parameters: ReadonlyArray<string>): number => {
  const q = parameters.map((it) => /^\s*q\s*=\s*([\d.]+)\s*$/iu.exec(it)?.[1]).find(Boolean)
  return q === undefined ? 1 : Number(q)
}

/** Whether the client accepts `text/event-stream` and does not prefer `application/json` (RFC 9110, 12.5.1). */
export const wantsEventStream = (accept: string | undefined): boolean => {
  if (accept === undefined || !/text\/event-stream/iu.test(accept)) return false
  const qualities = new Map(
    accept.split(",").map((range) => {
      const [type = "", ...parameters] = range.split(";")
      return [type.trim().toLowerCase(), qualityOf(parameters)]
    })
  )
  const stream = qualities.get("text/event-stream") ?? 0
  return stream > 0 && stream >= (qualities.get("application/json") ?? 0)
}

const utf8 = new TextEncoder()

/** A comment, which clients skip and which keeps proxies from closing an idle connection. */
const heartbeat = utf8.encode(": still here\n\n")

/**
 * An event with the `id:` that the client returns as `Last-Event-ID` when it reconnects. Without `data`, the client
 * dispatches no event but remembers the id. HTML, 9.2.6
 */
export interface Sent {
  readonly id?: string
  readonly data?: string
  /** The event's type, for clients that read it. */
  readonly event?: string
}

const wireOf = (sent: string | Sent): string => {
  if (typeof sent === "string") return `data: ${sent}\n\n`
  const { data, event, id } = sent
  const fields = Object.entries({ id, event, data })
  return `${fields.map(([name, value]) => (value === undefined ? "" : `${name}: ${value}\n`)).join("")}\n`
}

/**
 * Sends each text as one `data:` event and ends when there are no more. If the client disconnects, the stream and its
 * source are interrupted. docs/reference/tasks.md#event-stream
 */
export const eventStream = <E>(
  texts: Stream.Stream<string | Sent, E>,
  headers: Readonly<Record<string, string>>
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(eventBytes(texts), {
    contentType: eventStreamHeaders["content-type"],
    headers: { ...eventStreamHeaders, ...headers }
  })

export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no"
}

/** The events as bytes, with comments while there are none. */
export const eventBytes = <E, R>(
  texts: Stream.Stream<string | Sent, E, R>
): Stream.Stream<Uint8Array, E, R> => {
  const beats = Stream.tick(Duration.seconds(eventStreamHeartbeatSeconds)).pipe(
    Stream.drop(1),
    Stream.map(() => heartbeat)
  )
  const events = Stream.map(texts, (sent) => utf8.encode(wireOf(sent)))
  return Stream.merge(events, beats, { haltStrategy: "left" })
}
