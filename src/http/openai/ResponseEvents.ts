import { Deferred, Duration, Effect, Option, Result, Schema, Stream } from "effect"
import type { Scope } from "effect"
import type { Problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { Responses } from "../../tasks/responses/Responses.ts"
import type { Response, ResponseEvent } from "../../tasks/responses/Responses.ts"
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
    let isOver = false
    const place = new Place(after)
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
        Effect.result(responses.events(response, place.readAfter)),
        Result.match({
          onFailure: (error) =>
            error._tag === "VendorError" && error.class !== "RETRYABLE"
              ? Stream.fromEffect(Effect.never)
              : Stream.empty,
          onSuccess: Option.match({
            onNone: () => Stream.empty,
            onSome: (events) => {
              place.isOpen = true
              return events
            }
          })
        })
      )
    ).pipe(
      Stream.catchCause(() => Stream.empty),
      Stream.filter((event) => place.follow(event)),
      Stream.map(({ data, type }): Sent => ({ event: type, data }))
    )
    const relayed: Stream.Stream<Sent> = Stream.suspend(() =>
      Stream.concat(
        relayOnce,
        Stream.suspend(() =>
          place.hasEnded || isOver
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
        if (place.hasEnded || !(yield* Deferred.await(over)) || place.isBeyond) return Stream.empty
        const made = yield* Effect.option(lastEvent(task.userId, idOf(response), place.last))
        const event = Option.getOrUndefined(made)
        return event === undefined ? Stream.empty : Stream.succeed<Sent>(event)
      })
    )
    return Stream.concat(
      relayed.pipe(
        Stream.takeUntil(() => place.hasEnded),
        Stream.interruptWhen(tooLong)
      ),
      closing
    )
  })
})

/** Where a stream is among the events of its response. */
class Place {
  last: number | undefined
  /** The last event has passed. */
  hasEnded = false
  /** The vendor has opened its stream. */
  isOpen = false
  readonly #after: number | undefined
  #isFound: boolean

  constructor(after: number | undefined) {
    this.#after = after
    this.last = after
    this.#isFound = after === undefined
  }

  /** The client has the last event, or no event has its number. */
  get isBeyond(): boolean {
    return this.isOpen && !this.#isFound
  }

  /** The client's event is read again: whether it is there, and the last one, cannot be seen otherwise. */
  get readAfter(): number | undefined {
    if (this.#isFound || this.#after === undefined) return this.last
    return this.#after === 0 ? undefined : this.#after - 1
  }

  /** Whether the client has not had the event. */
  follow({ sequence, type }: Pick<ResponseEvent, "sequence" | "type">): boolean {
    this.#isFound = true
    this.hasEnded = ends.has(type)
    if (this.#after !== undefined && sequence <= this.#after) return false
    this.last = sequence
    return true
  }
}

const decodeStatus = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ status: Schema.String }))
)

const statusIn = (document: string): string =>
  Option.match(decodeStatus(document), {
    onNone: () => "failed",
    onSome: ({ status }) => status
  })

const idOf = ({ task }: Response): string => responseOf(factsOf({ task, body: Option.none() })).id
