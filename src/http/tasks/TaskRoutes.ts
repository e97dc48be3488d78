import { DateTime, Duration, Effect, Option, Schema, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { Headers } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { edits, generations } from "../../contract/GenerationApi.ts"
import type { Quote as QuoteView } from "../../contract/GenerationApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { TaskId } from "../../domain/Ids.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { taskBody } from "../../domain/task/TaskBody.ts"
import { Admission } from "../../process/admission/Admission.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { Quote } from "../../tasks/creation/Router.ts"
import type { ModelPath } from "../../tasks/creation/TaskAcceptance.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import type { Created } from "../../tasks/creation/TaskCreation.ts"
import { TaskWatch } from "../../tasks/TaskWatch.ts"
import type { MayStill } from "../../tasks/TaskWatch.ts"
import { refuseOtherModels } from "../../users/AllowedModels.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { matches } from "../server/ByteRanges.ts"
import { eventStream, wantsEventStream } from "../server/EventStream.ts"
import { refuseLongKey } from "../server/IdempotencyKey.ts"
import { maxCostHeader } from "../server/MaxCost.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import {
  costOf,
  endingHeaders,
  headerOf,
  makeAccept,
  makeCreatedHeaders,
  makeEndOf,
  makeModelHeaders
} from "./CreatedTask.ts"
import type { Header, TaskView } from "./CreatedTask.ts"
import { preferredWait } from "./PreferredWait.ts"

/** Create, read and cancel tasks at `/generation` and `/edit`. docs/reference/tasks.md#paths */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const tasks = yield* makeHandlers
    for (const [action, { create, get }] of [
      ["generation", generations],
      ["edit", edits]
    ] as const) {
      yield* router.addAll([
        ...resource(create.path, { POST: tasks.create(action) }),
        ...resource(get.path, { GET: tasks.get(action), DELETE: tasks.cancel(action) })
      ])
    }
    // Background responses, which are created at /v1/responses. docs/reference/background.md
    yield* router.addAll([
      ...resource("/vendors/:vendor/v1/:model/responses/:task_id", {
        GET: tasks.get("responses"),
        DELETE: tasks.cancel("responses")
      }),
      ...resource("/vendors/:vendor/v1/:model/batches/:task_id", {
        GET: tasks.get("batches"),
        DELETE: tasks.cancel("batches")
      })
    ])
  })
)

/** Seconds until the client should poll again. docs/reference/tasks.md#polling */
const retryAfterSeconds = "2"

const makeHandlers = Effect.gen(function* () {
  const router = yield* Router
  const { serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  const show = makeShow(header)
  const admit = yield* makeAdmitInference
  const cancel = Effect.fnUntraced(function* (action: ModelPath["action"]) {
    const { principal } = yield* admit(Option.none())
    const path = yield* modelPath(action)
    const { ending, task } = yield* router.cancel(principal.userId, path, yield* taskId)
    return HttpServerResponse.setHeaders(show(task), endingHeaders(ending))
  })

  return {
    create: yield* makeCreate(header, show),
    get: yield* makeGet(header, show, admit),
    cancel
  }
})

type Admit = Effect.Success<typeof makeAdmitInference>

const makeCreate = Effect.fnUntraced(function* (header: Header, show: Show) {
  const router = yield* Router
  const bodies = yield* RequestBodyLimiter
  const { serviceName } = yield* AppConfig
  const { creates } = yield* Admission
  const accept = makeAccept(router, creates, maxCostHeader(serviceName))
  const admitCreate = yield* makeAdmitCreate
  const endOf = yield* makeEndOf
  const respond = makeAccepted(header, show)
  return Effect.fnUntraced(function* (action: ModelPath["action"]) {
    const caller = yield* admitCreate()
    const { mayStill, principal } = caller
    const path = yield* modelPath(action)
    yield* refuseOtherModels(principal, router.modelsAt(path))
    const isDryRun = yield* readDryRun
    const request = yield* HttpServerRequest.HttpServerRequest
    const within = bodies.within(request, principal.userId)
    if (isDryRun) return yield* within(quoted(router, path))
    // A create that waits keeps neither its body nor the body's place in the limiter
    const created = yield* within(
      Effect.suspend(() =>
        // Copied, because a request keeps the body that was read from it and stays in memory until its response
        Effect.provideService(
          Effect.flatMap(readJsonBody, (body) => accept(request, caller, path, body)),
          HttpServerRequest.HttpServerRequest,
          request.modify({})
        )
      )
    )
    const seconds = preferredWait(request.headers["prefer"])
    if (Option.isNone(seconds)) return respond(created, Option.none())
    const wait = Duration.seconds(seconds.value)
    const id = yield* createdId(created)
    const ended = yield* endOf({ userId: principal.userId, mayStill }, path, id, wait)
    return HttpServerResponse.setHeader(
      respond(created, ended),
      "preference-applied",
      `wait=${seconds.value}`
    )
  })
})

const quoted = Effect.fnUntraced(function* (router: Router["Service"], path: ModelPath) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  yield* refuseLongKey(headers["idempotency-key"])
  const { value } = yield* readJsonBody
  const { alias, amount, ending } = yield* router.quote(path, value)
  const quote = { amount: Credits.format(amount), currency: "credits" as const }
  const shown: (typeof QuoteView)["Encoded"] = {
    quote: alias === undefined ? quote : { ...quote, candidates: candidatesIn(alias) }
  }
  return HttpServerResponse.jsonUnsafe(shown, { headers: endingHeaders(ending) })
})

/** The models in listed order. With weights, the task's id decides which one comes first. */
const candidatesIn = ({ leftOut, models }: NonNullable<Quote["alias"]>) => [
  ...models.map(({ amount, entry: { model, vendor } }) => ({
    vendor,
    model,
    amount: Credits.format(amount),
    skipped: null
  })),
  ...leftOut.map(({ entry: { model, vendor }, reason }) => ({
    vendor,
    model,
    amount: null,
    skipped: reason
  }))
]

const makeAccepted = (header: Header, show: Show) => {
  const cost = header("cost")
  const headersOf = makeCreatedHeaders(header)
  return (created: Created, ended: Option.Option<TaskView>) =>
    Option.isSome(ended)
      ? HttpServerResponse.setHeaders(show(ended.value), headersOf(created))
      : HttpServerResponse.text(created.body, {
          status: 202,
          contentType: "application/json",
          headers: { [cost]: Credits.format(created.cost), ...headersOf(created) }
        })
}

type Show = (task: TaskView) => HttpServerResponse.HttpServerResponse

const makeShow = (header: Header) => {
  const cost = header("cost")
  const sandbox = header("sandbox")
  const modelHeaders = makeModelHeaders(header)
  return (task: TaskView) => {
    const headers: Record<string, string> = {
      ...modelHeaders(task),
      "cache-control": "no-store",
      etag: tagOf(task),
      [cost]: Credits.format(costOf(task))
    }
    if (task.sandbox) headers[sandbox] = "true"
    if (!isTerminal(task.status)) headers["retry-after"] = retryAfterSeconds
    return HttpServerResponse.text(bodyOf(task), { contentType: "application/json", headers })
  }
}

/** The entity tag. The response changes only when the status does, so the tag is derived from the last change. */
const tagOf = ({ id, status, updatedAt }: TaskView): string =>
  `"${id}-${status}-${DateTime.toEpochMillis(updatedAt).toString(36)}"`

const makeGet = Effect.fnUntraced(function* (header: Header, show: Show, admit: Admit) {
  const router = yield* Router
  const watch = yield* TaskWatch
  const cost = header("cost")
  const sandboxed = { [header("sandbox")]: "true" }
  const respond = (
    request: HttpServerRequest.HttpServerRequest,
    task: TaskView,
    mayStill: MayStill
  ) => {
    const { headers } = request
    if (request.method === "GET" && wantsEventStream(headers["accept"])) {
      const headers = { [cost]: Credits.format(costOf(task)), ...(task.sandbox ? sandboxed : {}) }
      return Effect.map(watch.moves(task, mayStill), (moves) =>
        eventStream(Stream.map(moves, bodyOf), headers)
      )
    }
    const seconds = preferredWait(headers["prefer"])
    if (Option.isNone(seconds)) return Effect.succeed(notModified(headers, show(task)))
    const wait = Duration.seconds(seconds.value)
    return Effect.map(watch.untilEnd(task, wait, mayStill), (last) =>
      HttpServerResponse.setHeader(
        notModified(headers, show(last)),
        "preference-applied",
        `wait=${seconds.value}`
      )
    )
  }
  return (action: ModelPath["action"]) =>
    Effect.flatMap(HttpRouter.params, ({ model = "", task_id: text = "", vendor = "" }) => {
      const id = decodeTaskId(text)
      return Effect.flatMap(admit(id), (admitted) =>
        Option.isNone(id)
          ? Effect.fail(noTask(text))
          : Effect.flatMap(
              router.matchPath({ vendor, model, action }, id.value, admitted.task),
              ({ ending, task }) =>
                Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
                  ending === undefined
                    ? respond(request, task, admitted.mayStill)
                    : Effect.map(
                        respond(request, task, admitted.mayStill),
                        HttpServerResponse.setHeaders(endingHeaders(ending))
                      )
                )
            )
      )
    })
})

/** The JSON for GET, for `data:` in an event stream and for `payload` in webhook events. */
const bodyOf = (task: TaskView): string => taskBody(task, task.resultKind)

const modelPath = (action: ModelPath["action"]) =>
  Effect.map(HttpRouter.params, ({ model = "", vendor = "" }) => ({ vendor, model, action }))

const decodeTaskId = Schema.decodeUnknownOption(TaskId)

/** The task id of the path. An id that is not a UUID also fails with 2005. */
const taskId = Effect.flatMap(HttpRouter.params, ({ task_id: id = "" }) =>
  Effect.mapError(Effect.fromOption(decodeTaskId(id)), () => noTask(id))
)

const noTask = (id: string) => problem(2005, `There is no task ${id.slice(0, 60)}`)

const readDryRun = Effect.andThen(
  refuseUnknownQuery(["dry_run"]),
  Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) => {
    const value = query["dry_run"]
    if (value === undefined || value === "false") return Effect.succeed(false)
    return value === "true"
      ? Effect.succeed(true)
      : Effect.fail(invalid([{ pointer: "#/query/dry_run", detail: "Expected true or false" }]))
  })
)

/** A 304 if the client already has this response (RFC 9110, section 13.1.2). */
const notModified = (
  headers: Headers.Headers,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const tag = response.headers["etag"]
  return tag !== undefined && matches(headers["if-none-match"], tag)
    ? HttpServerResponse.empty({ status: 304, headers: response.headers })
    : response
}
