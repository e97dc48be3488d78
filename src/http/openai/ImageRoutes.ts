import { Array as Arr, Duration, Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { nameOf } from "../../catalog/Alias.ts"
import { AppConfig } from "../../config/Config.ts"
import { createImage, createImageEdit } from "../../contract/ImagesApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { Router } from "../../tasks/creation/Router.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { problemResponse } from "../server/problems/Problems.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import {
  costOf,
  headerOf,
  makeCreatedHeaders,
  makeEndOf,
  makeModelHeaders
} from "../tasks/CreatedTask.ts"
import type { TaskView } from "../tasks/CreatedTask.ts"
import { prefersAsync, preferredWait } from "../tasks/PreferredWait.ts"
import { taskProblem, taskUrl } from "../tasks/TaskProblem.ts"
import { imageRequestOf } from "./ImageRequest.ts"
import type { ImageKind, ImageRequest } from "./ImageRequest.ts"
import { makeImageResponse } from "./ImageResponse.ts"
import { makeShapedCreate } from "./ShapedCreate.ts"
import type { ShapedTasks } from "./ShapedCreate.ts"

/** Images with OpenAI's API. Each image is made by a task. docs/reference/shapes.md#images */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const create = yield* makeCreate
    yield* router.addAll([
      ...resource(createImage.path, { POST: create("generations") }),
      ...resource(createImageEdit.path, { POST: create("edits") })
    ])
  })
)

const makeCreate = Effect.gen(function* () {
  const { imagesWait } = yield* AppConfig
  const admitCreate = yield* makeAdmitCreate
  const endOf = yield* makeEndOf
  const create = yield* makeShapedCreate
  const router = yield* Router
  const answer = yield* makeAnswer
  return (kind: ImageKind) =>
    Effect.gen(function* () {
      const admitted = yield* admitCreate()
      const { mayStill, principal } = admitted
      yield* refuseUnknownQuery([])
      const request = yield* HttpServerRequest.HttpServerRequest
      const begun = yield* create(admitted, imageRequestOf(kind, router.takes))
      const prefer = request.headers["prefer"]
      const isAsync = prefersAsync(prefer)
      const wait = Option.match(preferredWait(prefer), {
        onNone: () => (isAsync ? Duration.zero : imagesWait),
        onSome: (seconds) => Duration.seconds(seconds)
      })
      const caller = { userId: principal.userId, mayStill }
      const seen = yield* Effect.forEach(
        begun.ids,
        (id) => (Duration.isZero(wait) ? Effect.succeedNone : endOf(caller, begun.path, id, wait)),
        { concurrency: "unbounded" }
      )
      return isAsync && seen.some(Option.isNone)
        ? answer.accepted(begun)
        : yield* answer.ended(begun, seen)
    })
})

type Begun = ShapedTasks<ImageRequest>

/** The tasks in the order of their ids; `None` for one that has not ended. */
type Seen = ReadonlyArray<Option.Option<TaskView>>

/** Builds the response. From here on the tasks exist, so no failure may make a client repeat the request. */
const makeAnswer = Effect.gen(function* () {
  const { baseUrl, serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  const headersOf = makeCreatedHeaders(header)
  const modelHeaders = makeModelHeaders(header)
  const imagesOf = yield* makeImageResponse
  const common = ({ asked, created, ids, path }: Begun, cost: Credits.Credits) => ({
    ...headersOf(created),
    [header("cost")]: Credits.format(cost),
    [header("task-id")]: ids.join(", "),
    ...(asked.isStandIn ? { [header("model")]: nameOf(asked.model) } : {}),
    ...(asked.size === undefined ? {} : { [header("size")]: asked.size }),
    ...(asked.ignored.length === 0 ? {} : { [header("ignored")]: asked.ignored.join(", ") }),
    location: taskUrl(baseUrl, path, ids[0]),
    "cache-control": "no-store"
  })
  return {
    accepted: (begun: Begun) =>
      HttpServerResponse.text(begun.created.body, {
        status: 202,
        contentType: "application/json",
        headers: { ...common(begun, begun.created.cost), "preference-applied": "respond-async" }
      }),
    ended: Effect.fnUntraced(function* (begun: Begun, seen: Seen) {
      const { asked, ids, path } = begun
      const ended = seen.flatMap(Option.toArray)
      const [first] = ended
      const headers = {
        ...common(begun, costOfAll(begun, seen)),
        ...(first === undefined ? {} : modelHeaders(first))
      }
      const completed = ended.filter(({ status }) => status === "completed")
      const images =
        ended.length === seen.length && Arr.isReadonlyArrayNonEmpty(completed)
          ? yield* Effect.option(Effect.sandbox(imagesOf(completed, asked.format)))
          : Option.none()
      if (Option.isSome(images)) {
        return HttpServerResponse.jsonUnsafe(images.value, { headers })
      }
      const index = Math.max(0, seen.findIndex(Option.isNone))
      const id = ids[index] ?? ids[0]
      const fault = taskProblem(id, taskUrl(baseUrl, path, id), seen[index] ?? Option.none())
      return HttpServerResponse.setHeaders(yield* problemResponse(fault), headers)
    })
  }
})

/** The charges of the tasks that have ended plus the holds of the others; all holds are equal. */
const costOfAll = ({ created, ids }: Begun, seen: Seen): Credits.Credits =>
  seen.reduce(
    (sum, task) =>
      Credits.make(
        sum +
          Option.match(task, {
            onNone: () => created.cost / BigInt(ids.length),
            onSome: costOf
          })
      ),
    Credits.zero
  )
