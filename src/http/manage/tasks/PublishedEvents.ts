import { DateTime, Duration, Effect, Option, Schema, Stream } from "effect"
import { StreamedEvent } from "../../../contract/manage/EventsApi.ts"
import type { StreamedEventType } from "../../../domain/Event.ts"
import type { UserId } from "../../../domain/Ids.ts"
import {
  userStreamCatchUpMillis,
  userStreamEntriesMax,
  userStreamSeconds
} from "../../../domain/limits/SignInLimits.ts"
import type { EventLog, EventPosition, EventRow } from "../../../webhooks/EventLog.ts"
import type { Sent } from "../../server/EventStream.ts"

const encode = Schema.encodeSync(StreamedEvent)
const utf8 = new TextDecoder()

const textOf = ({ body, createdAt, id, taskId, type }: EventRow): string =>
  JSON.stringify({
    type: "event",
    data: encode({ id, type, created_at: createdAt, task_id: taskId, body: utf8.decode(body) })
  })

export interface PublishedFilter {
  readonly types: ReadonlyArray<StreamedEventType>
  /** Sends events created at this time or later. Without it and without a position, sends events from now on. */
  readonly since: Option.Option<DateTime.Utc>
  /** The position that an earlier stream reached. */
  readonly position: Option.Option<EventPosition>
}

/** The form of `id:`, which the client returns as `Last-Event-ID`. */
const positionPattern = /^(\d{1,18})\.(\d{1,15})$/u

/** `undefined`: not a position of this service. */
export const parsePosition = (text: string): EventPosition | undefined => {
  const [, seq, millis] = positionPattern.exec(text) ?? []
  if (seq === undefined || millis === undefined) return undefined
  return { seq: BigInt(seq), alertsUntil: DateTime.makeUnsafe(Number(millis)) }
}

const formatPosition = ({ alertsUntil, seq }: EventPosition): string =>
  `${seq}.${DateTime.toEpochMillis(alertsUntil)}`

/** Each event with the position after it. If an entry has two events, the position passes the entry only after both. */
const sentOf = (rows: ReadonlyArray<EventRow>, before: EventPosition) => {
  let position = before
  const sent = rows.map((row, at): Sent => {
    const isLast = rows[at + 1]?.seq !== row.seq
    const { seq } = row
    position = {
      seq: isLast ? seq : seq > position.seq ? seq - 1n : position.seq,
      alertsUntil:
        row.taskId === null
          ? DateTime.max(position.alertsUntil, row.createdAt)
          : position.alertsUntil
    }
    return { id: formatPosition(position), data: textOf(row) }
  })
  return { sent, position }
}

/**
 * How far the log has been read. The first read sends the position before any event, so that a stream that is cut
 * before its first event can resume.
 */
interface Progress {
  readonly position: EventPosition
  readonly pause: Duration.Duration
}

const pause = Duration.seconds(userStreamSeconds)
const catchUpPause = Duration.millis(userStreamCatchUpMillis)

/**
 * A user's events from the given start, each once, as webhooks deliver them. The stream ends when `mayStill` fails
 * because the caller's key or session has ended. docs/reference/http.md#events-of-a-user, ADR 0232.
 */
export const publishedEvents = <E, R>(
  log: EventLog["Service"],
  userId: UserId,
  filter: PublishedFilter,
  mayStill: Effect.Effect<unknown, E, R>
) =>
  Stream.unfold<Progress | undefined, ReadonlyArray<Sent>, unknown, R>(undefined, (last) =>
    Effect.gen(function* () {
      if (last === undefined) {
        const position = yield* Option.match(filter.position, {
          onSome: Effect.succeed,
          onNone: () => log.position(userId, filter.since)
        })
        return [[{ id: formatPosition(position) }], { position, pause: Duration.zero }]
      }
      yield* Effect.sleep(last.pause)
      yield* mayStill
      const { position: before } = last
      const { since, types } = filter
      const page = yield* log.after(userId, {
        types,
        since,
        position: before,
        entries: userStreamEntriesMax
      })
      const { position, sent } = sentOf(page.rows, before)
      const next = { ...position, seq: page.seq }
      // Also moves past entries that have no event of the requested types
      const moved = next.seq > position.seq ? [{ id: formatPosition(next) }] : []
      return [[...sent, ...moved], { position: next, pause: page.isFull ? catchUpPause : pause }]
    })
  ).pipe(
    Stream.flattenIterable,
    Stream.catchCause(() => Stream.empty)
  )
