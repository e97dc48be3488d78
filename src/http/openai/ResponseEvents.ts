import { Deferred, Duration, Effect, Option, Result, Schema, Stream } from "effect"
import type { Scope } from "effect"
import type { Problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { Responses } from "../../tasks/responses/Responses.ts"
import type { Response } from "../../tasks/responses/Responses.ts"
import { TaskWatch } from "../../tasks/TaskWatch.ts"
import type { MayStill } from "../../tasks/TaskWatch.ts"
import type { Sent } from "../server/EventStream.ts"
import { factsOf, responseOf } from "./ResponseObject.ts"

/** The wait before a stream that has not started, or that was cut, is opened again. */
const reopenAfter = Duration.seconds(1)

/** How long to wait for the vendor's last events after the task has ended. */
const lastEventsMax = Duration.seconds(10)

/** The types of events that end a response. */
const ends = new Set(["response.completed", "response.incomplete", "response.failed"])

const utf8 = new TextDecoder()

/**
 * The events of a response after this sequence number. They come from the vendor's stream, whichever process submitted
 * the response, and the stream is opened again if it is cut. If the vendor does not send the last event, it is built
 * from the response's final state. docs/reference/background.md#streams
 */
export const makeResponseEvents = Effect.gen(function* () {
  const responses = yield* Responses
  const watch = yield* TaskWatch

  /** The last event of a response that has ended. */
  const lastEvent = Effect.fnUntraced(function* (
    userId: Response["task"]["userId"],
    id: string,
    after: number | undefined
  ) {
    const response = yield* responses.get(userId, id)
    const ended = responseOf(factsOf(response))
    // OpenAI has no event for a cancelled response
    if (ended.status === "cancelled") return
    const shown =
      response.task.status === "completed"
        ? utf8.decode(yield* responses.document(response.task))
        : JSON.stringify(ended)
    const type = `response.${statusIn(shown)}`
    const number = (after ?? -1) + 1
    return {
      event: type,
      data: `{"type":"${type}","sequence_number":${number},"response":${shown}}`
    }
  })

  return Effect.fnUntraced(function* (
    response: Response,
    after: number | undefined,
    mayStill: MayStill
  ): Effect.fn.Return<Stream.Stream<Sent>, Problem, Scope.Scope> {
    const { task } = response
    const moves = yield* watch.moves(task, mayStill)
    const over = yield* Deferred.make<boolean>()
    let [last, hasEnded, isOver]: [number | undefined, boolean, boolean] = [after, false, false]
    yield* Effect.forkScoped(
      Stream.runLast(moves).pipe(
        Effect.flatMap((seen) => {
          isOver = true
          return Deferred.succeed(
            over,
            Option.exists(seen, ({ status }) => isTerminal(status))
          )
        })
      )
    )

    const relayOnce = Stream.unwrap(
      Effect.map(
        Effect.result(responses.events(response, last)),
        Result.match({
          onFailure: (error) =>
            error._tag === "VendorError" && error.class !== "RETRYABLE"
              ? Stream.fromEffect(Effect.never)
              : Stream.empty,
          onSuccess: Option.getOrElse(() => Stream.empty)
        })
      )
    ).pipe(
      Stream.catchCause(() => Stream.empty),
      Stream.map(({ data, sequence, type }): Sent => {
        last = sequence
        hasEnded = ends.has(type)
        return { event: type, data }
      })
    )
    const relayed: Stream.Stream<Sent> = Stream.suspend(() =>
      Stream.concat(
        relayOnce,
        Stream.suspend(() =>
          hasEnded || isOver
            ? Stream.empty
            : Stream.concat(Stream.fromEffectDrain(Effect.sleep(reopenAfter)), relayed)
        )
      )
    )
    const tooLong = Effect.flatMap(Deferred.await(over), (isEnd) =>
      isEnd ? Effect.sleep(lastEventsMax) : Effect.void
    )
    const closing = Stream.unwrap(
      Effect.gen(function* () {
        if (hasEnded || !(yield* Deferred.await(over))) return Stream.empty
        const made = yield* Effect.option(lastEvent(task.userId, idOf(response), last))
        const event = Option.getOrUndefined(made)
        return event === undefined ? Stream.empty : Stream.succeed<Sent>(event)
      })
    )
    return Stream.concat(
      relayed.pipe(
        Stream.takeUntil(() => hasEnded),
        Stream.interruptWhen(tooLong)
      ),
      closing
    )
  })
})

const decodeStatus = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ status: Schema.String }))
)

const statusIn = (document: string): string =>
  Option.match(decodeStatus(document), {
    onNone: () => "failed",
    onSome: ({ status }) => status
  })

const idOf = ({ task }: Response): string => responseOf(factsOf({ task, body: Option.none() })).id
