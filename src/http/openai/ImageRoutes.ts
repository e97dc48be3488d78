import { Duration, Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { AppConfig } from "../../config/Config.ts"
import { createImage, createImageEdit } from "../../contract/ImagesApi.ts"
import * as Credits from "../../domain/Credits.ts"
import type { Principal } from "../../users/ApiKeys.ts"
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
import { prefersAsync, preferredWait } from "../tasks/PreferredWait.ts"
import { imageRequestOf } from "./ImageRequest.ts"
import type { ImageKind } from "./ImageRequest.ts"
import { makeImageResponse } from "./ImageResponse.ts"
import { makeShapedCreate } from "./ShapedCreate.ts"
import { taskProblem, taskUrl } from "./TaskProblem.ts"

/** Images as OpenAI's clients ask for them; behind each request is a task. docs/reference/shapes.md#images */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const create = yield* makeCreate
    yield* router.addAll([
      resource(createImage.path, { POST: create("generations") }),
      resource(createImageEdit.path, { POST: create("edits") })
    ])
  })
)

const makeCreate = Effect.gen(function* () {
  const { imagesWait } = yield* AppConfig
  const admitCreate = yield* makeAdmitCreate
  const endOf = yield* makeEndOf
  const create = yield* makeShapedCreate
  const answer = yield* makeAnswer
  return (kind: ImageKind) =>
    Effect.gen(function* () {
      const { mayStill, principal } = yield* admitCreate()
      yield* refuseUnknownQuery([])
      const request = yield* HttpServerRequest.HttpServerRequest
      const begun = yield* beginOf(create, principal, kind)
      const prefer = request.headers["prefer"]
      const isAsync = prefersAsync(prefer)
      const wait = Option.match(preferredWait(prefer), {
        onNone: () => (isAsync ? Duration.zero : imagesWait),
        onSome: (seconds) => Duration.seconds(seconds)
      })
      const { id, path } = begun
      const ended = Duration.isZero(wait)
        ? Option.none()
        : yield* endOf({ userId: principal.userId, mayStill }, path, id, wait)
      return Option.isNone(ended) && isAsync
        ? answer.accepted(begun)
        : yield* answer.ended(begun, ended)
    })
})

type Begun = Effect.Success<ReturnType<typeof beginOf>>

const beginOf = (
  create: Effect.Success<typeof makeShapedCreate>,
  principal: Principal,
  kind: ImageKind
) => create(principal, imageRequestOf(kind))

/** From here on the task exists: no failure is one that a client sends the request again for. */
const makeAnswer = Effect.gen(function* () {
  const { baseUrl, serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  const headersOf = makeCreatedHeaders(header)
  const modelHeaders = makeModelHeaders(header)
  const imagesOf = yield* makeImageResponse
  const common = ({ created, id, path }: Begun, cost: Credits.Credits) => ({
    ...headersOf(created),
    [header("cost")]: Credits.format(cost),
    [header("task-id")]: id,
    location: taskUrl(baseUrl, path, id),
    "cache-control": "no-store"
  })
  return {
    accepted: (begun: Begun) =>
      HttpServerResponse.text(begun.created.body, {
        status: 202,
        contentType: "application/json",
        headers: { ...common(begun, begun.created.cost), "preference-applied": "respond-async" }
      }),
    ended: Effect.fnUntraced(function* (
      begun: Begun,
      ended: Effect.Success<ReturnType<Effect.Success<typeof makeEndOf>>>
    ) {
      const { asked, created, id, path } = begun
      const headers = {
        ...common(begun, Option.match(ended, { onNone: () => created.cost, onSome: costOf })),
        ...Option.match(ended, { onNone: () => ({}), onSome: modelHeaders })
      }
      const images =
        Option.isSome(ended) && ended.value.status === "completed"
          ? yield* Effect.option(Effect.sandbox(imagesOf(ended.value, asked.format)))
          : Option.none()
      if (Option.isSome(images)) {
        return HttpServerResponse.jsonUnsafe(images.value, { headers })
      }
      const fault = taskProblem(id, taskUrl(baseUrl, path, id), ended)
      return HttpServerResponse.setHeaders(yield* problemResponse(fault), headers)
    })
  }
})
