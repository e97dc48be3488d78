import { Duration, Effect, Option, Schedule, Schema, Stream } from "effect"
import { Sse } from "effect/encoding"
import { TaskResult } from "../domain/Task.ts"
import { Management } from "./Management.ts"
import { failed } from "./terminal/Fault.ts"
import type { CommandFault } from "./terminal/Fault.ts"

/** A task as GET returns it, and the document itself. */
export interface SeenTask {
  readonly task: TaskResult
  readonly document: Schema.Json
}

const decodeTask = Schema.decodeUnknownEffect(TaskResult)
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

/** The texts of `data:` of a stream of server-sent events. */
export const eventTexts = (
  path: string,
  query: Readonly<Record<string, string | undefined>> = {}
) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const api = yield* Management
      const headers = { accept: "text/event-stream" }
      const response = yield* api.open({ path, as: "user", query, headers })
      return response.stream.pipe(
        Stream.decodeText,
        Stream.pipeThroughChannel(Sse.decode<unknown, unknown>()),
        Stream.map(({ data }) => data),
        Stream.mapError(() => lost(api.url))
      )
    })
  )

const lost = (url: string) =>
  failed(`The connection to ${url} was lost`, "Try again when the service is back")

export const isEnded = ({ task }: SeenTask): boolean =>
  task.task_info.status === "completed" || task.task_info.status === "failed"

/** A broken stream is opened again for so long. */
const patience = { schedule: Schedule.spaced(Duration.seconds(1)), times: 60 }

/** What the service itself refused is not tried again. */
const isPassing = ({ code, problem }: CommandFault): boolean =>
  code === undefined && problem === undefined

/**
 * Follows a task by its stream until it has ended, and shows each move. A service that restarts meanwhile is waited
 * for. docs/reference/tasks.md#event-stream
 */
export const followTask = Effect.fnUntraced(function* (
  path: string,
  onMove: (seen: SeenTask) => Effect.Effect<void>
) {
  const { url } = yield* Management
  const seen = (text: string) =>
    Effect.gen(function* () {
      const document = yield* decodeJson(text)
      return { document, task: yield* decodeTask(document) }
    }).pipe(Effect.mapError(() => failed(`${url} sent something else than a task`)))
  const once = eventTexts(path).pipe(
    Stream.mapEffect(seen),
    Stream.tap(onMove),
    Stream.filter(isEnded),
    Stream.runHead,
    Effect.flatMap(Option.match({ onNone: () => Effect.fail(lost(url)), onSome: Effect.succeed }))
  )
  return yield* Effect.retry(once, { while: isPassing, ...patience })
})
