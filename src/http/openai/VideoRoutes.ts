import { Effect, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { createVideo, getVideo, getVideoContent, remixVideo } from "../../contract/VideosApi.ts"
import type { DeletedVideo, VideoPage } from "../../contract/VideosApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { TaskId } from "../../domain/Ids.ts"
import { pageSizeDefault, pageSizeMax } from "../../domain/limits/Limits.ts"
import { invalid, problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { TaskResults } from "../../tasks/completion/TaskResults.ts"
import { noVideo, Videos } from "../../tasks/videos/Videos.ts"
import type { Video } from "../../tasks/videos/Videos.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { problemResponse } from "../server/problems/Problems.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { respondArtifact } from "../tasks/ArtifactRoutes.ts"
import { costOf, headerOf, makeCreatedHeaders, makeModelHeaders } from "../tasks/CreatedTask.ts"
import { taskProblem, taskUrl } from "../tasks/TaskProblem.ts"
import { makeShapedCreate } from "./ShapedCreate.ts"
import { createdVideoOf, videoOf } from "./VideoObject.ts"
import { videoRequestOf } from "./VideoRequest.ts"

/** Videos with OpenAI's API. Each video is a task. docs/reference/shapes.md#videos */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const [create, list, one] = [yield* makeCreate, yield* makeList, yield* makeOne]
    yield* router.addAll([
      ...resource(createVideo.path, { POST: create(), GET: list() }),
      ...resource(getVideo.path, { GET: one.get, DELETE: one.delete }),
      ...resource(getVideoContent.path, { GET: one.content }),
      ...resource(remixVideo.path, { POST: one.remix })
    ])
  })
)

/** Headers that the polling helpers of OpenAI's clients read. docs/reference/tasks.md#polling */
const pollAfter = { "openai-poll-after-ms": "2000", "retry-after": "2" }

const makeHeaders = Effect.gen(function* () {
  const { baseUrl, serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  const modelHeaders = makeModelHeaders(header)
  return (task: Video): Record<string, string> => ({
    ...modelHeaders(task),
    "cache-control": "no-store",
    [header("cost")]: Credits.format(costOf(task)),
    [header("task-id")]: task.id,
    "content-location": taskUrl(baseUrl, task, task.id),
    ...(task.sandbox ? { [header("sandbox")]: "true" } : {}),
    ...(isTerminal(task.status) ? {} : pollAfter)
  })
})

const makeCreate = Effect.gen(function* () {
  const admitCreate = yield* makeAdmitCreate
  const create = yield* makeShapedCreate
  const videos = yield* Videos
  const headersOf = yield* makeHeaders
  const { baseUrl, serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  const createdHeaders = makeCreatedHeaders(header)
  return Effect.fnUntraced(function* () {
    const caller = yield* admitCreate()
    yield* refuseUnknownQuery([])
    const { created, ids, path } = yield* create(caller, videoRequestOf)
    const [id] = ids
    const own = { ...createdHeaders(created), [header("cost")]: Credits.format(created.cost) }
    // The task exists, so a failure from here on must not make a client repeat the request
    const task = yield* Effect.option(Effect.sandbox(videos.get(caller.principal.userId, id)))
    if (Option.isNone(task)) {
      const fault = taskProblem(id, taskUrl(baseUrl, path, id), Option.none())
      return HttpServerResponse.setHeaders(yield* problemResponse(fault), own)
    }
    return HttpServerResponse.jsonUnsafe(createdVideoOf(task.value), {
      headers: { ...headersOf(task.value), ...own, ...pollAfter }
    })
  })
})

const decodeId = Schema.decodeUnknownOption(TaskId)

const makeList = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const videos = yield* Videos
  return Effect.fnUntraced(function* () {
    const { principal } = yield* admit(Option.none())
    yield* refuseUnknownQuery(["after", "limit", "order"])
    const query = yield* HttpServerRequest.ParsedSearchParams
    const { after, isAscending, limit } = yield* readPage(query)
    const page = { after, isAscending, limit: limit + 1 }
    const rows = yield* videos.list(principal.userId, page)
    const shown = rows.slice(0, limit)
    const body: (typeof VideoPage)["Encoded"] = {
      object: "list",
      data: shown.map(videoOf),
      first_id: shown[0]?.id ?? null,
      last_id: shown.at(-1)?.id ?? null,
      has_more: rows.length > limit
    }
    return HttpServerResponse.jsonUnsafe(body, { headers: { "cache-control": "no-store" } })
  })
})

const readPage = Effect.fnUntraced(function* (
  query: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
) {
  const { after, limit = String(pageSizeDefault), order = "desc" } = query
  const id = after === undefined ? Option.none() : decodeId(after)
  const size = typeof limit === "string" && /^\d{1,3}$/u.test(limit) ? Number(limit) : 0
  const faults = [
    ...(after !== undefined && Option.isNone(id) ? [fault("after", "the id of a video")] : []),
    ...(size < 1 || size > pageSizeMax
      ? [fault("limit", `a whole number from 1 to ${pageSizeMax}`)]
      : []),
    ...(order === "asc" || order === "desc" ? [] : [fault("order", "asc or desc")])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  return { after: Option.getOrUndefined(id), limit: size, isAscending: order === "asc" }
})

const fault = (name: string, expected: string) => ({
  pointer: `#/query/${name}`,
  detail: `Expected ${expected}`
})

const makeOne = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const videos = yield* Videos
  const results = yield* TaskResults
  const headersOf = yield* makeHeaders

  /** The task whose id is in the path, for its owner. */
  const owned = Effect.gen(function* () {
    const { video_id: text = "" } = yield* HttpRouter.params
    const { principal } = yield* admit(Option.none())
    const id = yield* Effect.mapError(Effect.fromOption(decodeId(text)), () => noVideo(text))
    return { id, userId: principal.userId }
  })
  const found = Effect.flatMap(owned, ({ id, userId }) => videos.get(userId, id))

  return {
    get: Effect.map(Effect.andThen(refuseUnknownQuery([]), found), (task) =>
      HttpServerResponse.jsonUnsafe(videoOf(task), { headers: headersOf(task) })
    ),
    delete: Effect.gen(function* () {
      const { id, userId } = yield* owned
      yield* videos.delete(userId, id)
      const body: (typeof DeletedVideo)["Encoded"] = { id, object: "video.deleted", deleted: true }
      return HttpServerResponse.jsonUnsafe(body)
    }),
    content: Effect.gen(function* () {
      const task = yield* found
      yield* refuseUnknownQuery(["variant"])
      const { variant = "video" } = yield* HttpServerRequest.ParsedSearchParams
      if (variant !== "video") return yield* invalid([fault("variant", "video, the only variant")])
      const [url] = task.result ?? []
      if (url === undefined) return yield* problem(2005, `The video is ${videoOf(task).status}`)
      const opened = yield* results.open(url)
      return Option.isSome(opened)
        ? yield* respondArtifact(opened.value)
        : HttpServerResponse.redirect(url, { headers: { "cache-control": "no-store" } })
    }),
    remix: Effect.flatMap(found, ({ model }) =>
      Effect.fail(
        invalid([
          {
            pointer: "#/model",
            detail: `${model} cannot remix: create a video with a model that edits videos`
          }
        ])
      )
    )
  }
})
