import { Effect, Option, Result, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { cancelResponse, getResponse } from "../../contract/ResponsesApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { Responses } from "../../tasks/responses/Responses.ts"
import type { Response } from "../../tasks/responses/Responses.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { eventStream } from "../server/EventStream.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { costOf, headerOf } from "../tasks/CreatedTask.ts"
import { pollAfter } from "./BackgroundCalls.ts"
import { makeResponseEvents } from "./ResponseEvents.ts"
import { factsOf, responseOf } from "./ResponseObject.ts"

/** Background responses with OpenAI's API: read and cancel. docs/reference/background.md */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const { cancel, get } = yield* makeHandlers
    yield* router.addAll(
      (["", "/vendors/openai"] as const)
        .flatMap((base) => [
          resource(`${base}${getResponse.path}`, { GET: get }),
          resource(`${base}${cancelResponse.path}`, { POST: cancel })
        ])
        .flat()
    )
  })
)

const makeHandlers = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const responses = yield* Responses
  const openEvents = yield* makeResponseEvents
  const { serviceName } = yield* AppConfig
  const header = headerOf(serviceName)

  const headersOf = ({ task }: Response): Record<string, string> => ({
    "cache-control": "no-store",
    [header("cost")]: Credits.format(costOf(task)),
    [header("task-id")]: task.id,
    ...(task.sandbox ? { [header("sandbox")]: "true" } : {}),
    ...(isTerminal(task.status) ? {} : pollAfter)
  })

  const show = Effect.fnUntraced(function* (response: Response) {
    const headers = headersOf(response)
    return response.task.status === "completed"
      ? HttpServerResponse.uint8Array(yield* responses.document(response.task), {
          contentType: "application/json",
          headers
        })
      : HttpServerResponse.jsonUnsafe(responseOf(factsOf(response)), { headers })
  })

  const admitted = Effect.gen(function* () {
    const { response_id: id = "" } = yield* HttpRouter.params
    const caller = yield* admit(Option.none())
    return { ...caller, id, userId: caller.principal.userId }
  })

  return {
    get: Effect.gen(function* () {
      const { id, mayStill, userId } = yield* admitted
      const { after, stream } = yield* readQuery
      const response = yield* responses.get(userId, id)
      if (!stream) return yield* show(response)
      if (Option.isNone(response.body)) return yield* bodyDeleted
      if (!response.body.value.stream) return yield* notStreamed
      return eventStream(yield* openEvents(response, after, mayStill), headersOf(response))
    }),
    cancel: Effect.gen(function* () {
      const { id, userId } = yield* admitted
      yield* refuseUnknownQuery([])
      const cancelled = yield* Effect.result(responses.cancel(userId, id))
      if (Result.isSuccess(cancelled)) return yield* show(cancelled.success)
      const error = cancelled.failure
      if (error._tag !== "Problem" || error.code !== 2010) return yield* error
      // As at OpenAI, a second cancel returns the response again
      const response = yield* responses.get(userId, id)
      return response.task.error?.code === 4004
        ? yield* show(response)
        : yield* problem(2010, `The response ${id} has already ended`)
    })
  }
})

const streamFault = (detail: string) => invalid([{ pointer: "#/query/stream", detail }])

const notStreamed = streamFault("The response was not created with background and stream both true")
const bodyDeleted = streamFault("The body of the request has been deleted: read without stream")

const decodeNumber = Schema.decodeUnknownOption(Schema.String.check(Schema.isPattern(/^\d{1,9}$/u)))

const readQuery = Effect.gen(function* () {
  yield* refuseUnknownQuery(["stream", "starting_after"])
  const { starting_after: after, stream = "false" } = yield* HttpServerRequest.ParsedSearchParams
  const number = Option.map(decodeNumber(after), Number)
  const isStream = stream === "true"
  const faults = [
    ...(isStream || stream === "false"
      ? []
      : [{ pointer: "#/query/stream", detail: "Expected true or false" }]),
    ...(after === undefined || (isStream && Option.isSome(number))
      ? []
      : [
          {
            pointer: "#/query/starting_after",
            detail: "Expected the number of an event, with stream=true"
          }
        ])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  return { stream: isStream, after: Option.getOrUndefined(number) }
})
