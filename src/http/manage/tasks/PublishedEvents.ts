import { Duration, Effect, Schema, Stream } from "effect"
import type { DateTime } from "effect"
import type { EventType } from "../../../domain/Event.ts"
import type { EventId, UserId } from "../../../domain/Ids.ts"
import { userStreamItemsMax, userStreamSeconds } from "../../../domain/SignInLimits.ts"
import type { EventLog, EventRow } from "../../../webhooks/EventLog.ts"
import { StreamedEvent } from "./EventsApi.ts"

const encode = Schema.encodeSync(StreamedEvent)
const utf8 = new TextDecoder()

const textOf = ({ body, createdAt, id, taskId, type }: EventRow): string =>
  JSON.stringify({
    type: "event",
    data: encode({ id, type, created_at: createdAt, task_id: taskId, body: utf8.decode(body) })
  })

/** Of all events that a look can find: two a task, and an alert. */
const sentMax = 2 * userStreamItemsMax + 1

const pause = Duration.seconds(userStreamSeconds)

/**
 * The events of a user from a time on, each once, as webhooks deliver them; `mayStill` fails when the caller's key or
 * session has ended, and with it the stream. docs/reference/http.md#events-of-a-user, ADR 0220.
 */
export const publishedEvents = <E, R>(
  log: EventLog["Service"],
  userId: UserId,
  filter: { readonly types: ReadonlyArray<EventType>; readonly since: DateTime.Utc },
  mayStill: Effect.Effect<unknown, E, R>
) =>
  Stream.unfold<ReadonlyArray<EventId> | undefined, ReadonlyArray<EventRow>, unknown, R>(
    undefined,
    (before) =>
      Effect.gen(function* () {
        if (before !== undefined) yield* Effect.sleep(pause)
        yield* mayStill
        const sent = before ?? []
        const rows = yield* log.newest(userId, {
          ...filter,
          except: sent,
          tasks: userStreamItemsMax
        })
        const known = [...sent, ...rows.map(({ id }) => id)]
        return [rows, known.slice(-sentMax)]
      })
  ).pipe(
    Stream.flattenIterable,
    Stream.map(textOf),
    Stream.catchCause(() => Stream.empty)
  )
