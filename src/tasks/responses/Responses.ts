import { Context, Effect, Layer, Option, Schema, Stream } from "effect"
import type { Scope } from "effect"
import * as Sse from "effect/encoding/Sse"
import { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import type { TaskRow } from "../../db/TaskRow.ts"
import { responseIdOf, taskOfResponse } from "../../domain/Ids.ts"
import type { UserId } from "../../domain/Ids.ts"
import { responseBytesMax } from "../../domain/limits/Limits.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { AccountKeys } from "../../process/accounts/AccountKeys.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import { VendorError } from "../../vendors/VendorError.ts"
import { TaskResults } from "../completion/TaskResults.ts"
import { Router } from "../creation/Router.ts"
import type { AcceptRequest } from "../creation/TaskAcceptance.ts"
import { replaysWith, TaskCreation } from "../creation/TaskCreation.ts"
import type { Created, PricedOrder } from "../creation/TaskCreation.ts"
import { TaskStore } from "../TaskStore.ts"

/** A task with the request that created it. */
export interface Response {
  readonly task: TaskRow
  /** `None`: the request body has been removed, as happens to old tasks. */
  readonly body: Option.Option<ResponseBody>
}

/** The parts of an earlier response that a request which continues it needs, with the account that stores it. */
export interface ContinuedResponse {
  readonly id: string
  readonly vendorId: string
  readonly attemptAccount: string
}

export interface ResponseEvent {
  readonly type: string
  readonly sequence: number
  /** JSON text. */
  readonly data: string
}

type Failure = Problem | StoreUnavailable

/** Background responses of language models, which run as tasks. docs/reference/background.md */
export class Responses extends Context.Service<
  Responses,
  {
    /** Whether the simulator makes responses, because no OpenAI key is configured. */
    readonly isSandbox: () => boolean
    /** Fails as `TaskCreation` does. */
    readonly create: (order: PricedOrder) => Effect.Effect<Created, Failure>
    /** The first response to a repeated request whose model is no longer sold. Fails with `refusal` if there is none. */
    readonly replay: (request: AcceptRequest, refusal: Problem) => Effect.Effect<Created, Failure>
    /** Fails with 2005. */
    readonly get: (userId: UserId, id: string) => Effect.Effect<Response, Failure>
    /** The document of a completed response. Fails with 2005 if it is no longer stored. */
    readonly document: (task: TaskRow) => Effect.Effect<Uint8Array, Failure>
    /**
     * Cancels the response at the vendor and waits for it to end. Fails with 2005, or with 2010 if it has already
     * ended.
     */
    readonly cancel: (userId: UserId, id: string) => Effect.Effect<Response, Failure>
    /**
     * The events of a response after `after`, as the vendor streams them, with the gateway's ids; ends with the
     * vendor's stream. `None`: the vendor has not started the response. Fails if the vendor does not stream it.
     */
    readonly events: (
      response: Response,
      after: number | undefined
    ) => Effect.Effect<
      Option.Option<Stream.Stream<ResponseEvent, VendorError>>,
      VendorError | StoreUnavailable,
      Scope.Scope
    >
    /** Fails with 2001 if the user has no such response or the vendor no longer has it. */
    readonly continued: (userId: UserId, id: string) => Effect.Effect<ContinuedResponse, Failure>
  }
>()("gateway/tasks/Responses") {
  static readonly layer = Layer.effect(
    Responses,
    Effect.gen(function* () {
      const creation = yield* TaskCreation
      const results = yield* TaskResults
      const router = yield* Router
      const tasks = yield* TaskStore
      const accounts = yield* AccountKeys
      const vendors = yield* VendorClient

      const find = Effect.fnUntraced(function* (userId: UserId, id: string) {
        const taskId = taskOfResponse(id)
        if (Option.isNone(taskId)) return Option.none<TaskRow>()
        return Option.filter(
          yield* tasks.find(taskId.value),
          (task) => task.userId === userId && task.resultKind === "responses"
        )
      })

      const get = Effect.fnUntraced(function* (userId: UserId, id: string) {
        const found = yield* find(userId, id)
        if (Option.isNone(found)) {
          return yield* problem(2005, `There is no response ${id.slice(0, 60)}`)
        }
        return { task: found.value, body: decodeBody(found.value.body) }
      })

      return Responses.of({
        isSandbox: () => vendors.isSandbox("openai-responses"),
        create: creation.createPriced,
        replay: replaysWith(tasks).replayForRemovedModel,
        get,
        document: Effect.fnUntraced(function* (task) {
          const [url] = task.result ?? []
          if (url === undefined) return yield* gone
          const read = { bytesMax: responseBytesMax, caller: task.userId }
          return (yield* Effect.mapError(results.read(url, read), (error) =>
            error._tag === "Problem" ? gone : error
          )).bytes
        }),
        cancel: Effect.fn("Responses.cancel")(function* (userId, id) {
          const { task } = yield* get(userId, id)
          yield* router.cancel(userId, task, task.id)
          return yield* get(userId, id)
        }),
        events: Effect.fnUntraced(function* ({ body, task }, after) {
          const job = yield* tasks.job(task.id)
          const id = Option.flatMap(job, ({ handle }) => decodeJob(handle))
          if (Option.isNone(job) || Option.isNone(id)) return Option.none()
          const account = yield* accounts.ownerOf(job.value.accountId)
          if (account.events === undefined) return yield* notStreamed
          const bytes = yield* account.events(job.value.handle, after)
          const previous = Option.getOrUndefined(body)?.previous
          const ids: ReadonlyArray<readonly [from: string, to: string]> = [
            [id.value.id, responseIdOf(task.id)],
            ...(previous === undefined ? [] : [[previous.vendor_id, previous.id] as const])
          ]
          return Option.some(eventsIn(bytes, ids))
        }),
        continued: Effect.fn("Responses.continued")(function* (userId, id) {
          const found = yield* find(userId, id)
          if (Option.isNone(found)) return yield* notContinued("There is no such response")
          const job = yield* tasks.job(found.value.id)
          const vendorId = Option.flatMap(job, ({ handle }) => decodeJob(handle))
          if (Option.isNone(job) || Option.isNone(vendorId)) {
            return yield* notContinued("This response has not begun, or the vendor refused it")
          }
          return { id, vendorId: vendorId.value.id, attemptAccount: job.value.accountId }
        })
      })
    })
  )
}

const notStreamed = new VendorError({ class: "LOST", message: "The vendor does not stream it" })

const decodeEvent = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({ type: Schema.String, sequence_number: Schema.Int }))
)

/** Skips messages that are not events of a response, such as `[DONE]`. */
const eventsIn = (
  bytes: Stream.Stream<Uint8Array, VendorError>,
  ids: ReadonlyArray<readonly [from: string, to: string]>
): Stream.Stream<ResponseEvent, VendorError> =>
  bytes.pipe(
    Stream.decodeText,
    Stream.pipeThroughChannel(Sse.decode()),
    Stream.catchTags({
      Retry: () => Stream.empty,
      SseError: () => Stream.fail(brokenEvents)
    }),
    Stream.flatMap(({ data: given }) => {
      const event = decodeEvent(given)
      if (Option.isNone(event)) return Stream.empty
      const { sequence_number: sequence, type } = event.value
      const data = ids.reduce((text, [from, to]) => text.replaceAll(from, to), given)
      return Stream.succeed({ type, sequence, data })
    })
  )

const brokenEvents = new VendorError({
  class: "RETRYABLE",
  message: "An event of the response cannot be read"
})

const decodeBody = Schema.decodeUnknownOption(ResponseBody)
const decodeJob = Schema.decodeUnknownOption(Schema.Struct({ id: Schema.NonEmptyString }))

const gone = problem(2005, "The response is no longer kept: it ended more than 24 hours ago")

const notContinued = (detail: string): Problem =>
  invalid([{ pointer: "#/previous_response_id", detail }])
