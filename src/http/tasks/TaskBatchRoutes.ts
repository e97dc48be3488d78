import { Array as Arr, DateTime, Effect, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { bodyParseOptions, faultsOf } from "../../catalog/FieldFaults.ts"
import { AppConfig } from "../../config/Config.ts"
import {
  batchListQuery,
  batchPageQuery,
  cancelTaskBatch,
  createTaskBatch,
  getTaskBatch,
  NewTaskBatch,
  TaskBatchList,
  TaskBatchPage
} from "../../contract/TaskBatchesApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { TaskBatchId, TaskId } from "../../domain/Ids.ts"
import { batchTasksMax } from "../../domain/limits/ShapeLimits.ts"
import { invalid } from "../../domain/Problem.ts"
import { TaskBatch } from "../../domain/task/TaskBatch.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import { noBatch, TaskBatches } from "../../tasks/batches/TaskBatches.ts"
import type { CreatedBatch } from "../../tasks/batches/TaskBatches.ts"
import { readPage, toPage } from "../manage/Paging.ts"
import { showListed } from "../manage/tasks/TasksHandlers.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import type { JsonBody } from "../server/bodies/JsonBody.ts"
import { RequestBodyLimiter } from "../server/bodies/RequestBodyLimiter.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { headerOf } from "./CreatedTask.ts"

/** Batches: many creates in one request. docs/reference/batches.md */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const [create, reads] = [yield* makeCreate, yield* makeReads]
    yield* router.addAll([
      ...resource(createTaskBatch.path, { POST: create, GET: reads.list }),
      ...resource(getTaskBatch.path, { GET: reads.get }),
      ...resource(cancelTaskBatch.path, { POST: reads.cancel })
    ])
  })
)

const decodeBatch = Schema.decodeUnknownEffect(NewTaskBatch, bodyParseOptions)

const readItems = Effect.fnUntraced(function* ({ value }: JsonBody) {
  // Checked before decoding, whose cost grows with the number of items
  if (typeof value === "object" && value !== null && "tasks" in value) {
    const { tasks } = value
    if (Array.isArray(tasks) && tasks.length > batchTasksMax) {
      const detail = `Expected at most ${batchTasksMax} tasks, got ${tasks.length}`
      return yield* invalid([{ pointer: "#/tasks", detail }])
    }
  }
  const { tasks } = yield* decodeBatch(value).pipe(
    Effect.mapError(({ issue }) => invalid(faultsOf(issue)))
  )
  return tasks.map(({ action = "generation", body, model, vendor }) => ({
    path: { vendor, model, action },
    body
  }))
})

const makeCreate = Effect.gen(function* () {
  const admitCreate = yield* makeAdmitCreate
  const batches = yield* TaskBatches
  const bodies = yield* RequestBodyLimiter
  const { creates } = yield* Admission
  const { serviceName } = yield* AppConfig
  const maxCostName = maxCostHeader(serviceName)
  const respond = makeAccepted(serviceName)
  return Effect.gen(function* () {
    const { isSignedIn, principal } = yield* admitCreate()
    yield* refuseUnknownQuery([])
    const request = yield* HttpServerRequest.HttpServerRequest
    const created = Effect.gen(function* () {
      const given = yield* readJsonBody
      yield* isSignedIn
      const items = yield* readItems(given)
      if (!Arr.isReadonlyArrayNonEmpty(items)) return yield* Effect.die("a batch has a task")
      const create = batches.create({
        principal,
        items,
        maxCost: yield* readMaxCost(request.headers, maxCostName),
        traceId: (yield* RequestTrace).traceId,
        idempotency: yield* readIdempotencyKey(request, given)
      })
      return yield* counted(creates, principal.userId, create)
    })
    return respond(yield* bodies.within(request, principal.userId)(created))
  })
})

const makeAccepted = (serviceName: string) => {
  const header = headerOf(serviceName)
  return ({ balance, body, cost, left, replayed }: CreatedBatch) =>
    HttpServerResponse.text(body, {
      status: 202,
      contentType: "application/json",
      headers: {
        [header("cost")]: Credits.format(cost),
        [header("balance")]: Credits.format(balance),
        ...(left === null ? {} : { [header("budget-remaining")]: Credits.format(left) }),
        ...(replayed ? { "idempotency-replayed": "true" } : {})
      }
    })
}

const makeReads = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const batches = yield* TaskBatches

  /** The batch whose id is in the path, for its owner. */
  const owned = Effect.gen(function* () {
    const { id: text = "" } = yield* HttpRouter.params
    const { principal } = yield* admit(Option.none())
    const id = yield* Effect.mapError(Effect.fromOption(decodeId(text)), () => noBatch(text))
    return { id, userId: principal.userId }
  })

  return {
    list: Effect.gen(function* () {
      const { principal } = yield* admit(Option.none())
      const { before, limit } = readPage(yield* readQuery(batchListQuery), TaskBatchId)
      const page = { before: Option.getOrUndefined(before), limit: limit + 1 }
      const rows = yield* batches.list(principal.userId, page)
      return yield* json(TaskBatchList)(
        yield* toPage(
          rows,
          limit,
          ({ id }) => id,
          (row) => row
        )
      )
    }),
    get: Effect.gen(function* () {
      const { id, userId } = yield* owned
      const { before: after, limit } = readPage(yield* readQuery(batchPageQuery), TaskId)
      const batch = yield* batches.get(userId, id)
      const page = { after: Option.getOrUndefined(after), limit: limit + 1 }
      const rows = yield* batches.tasks(id, page)
      return yield* json(TaskBatchPage)({
        ...batch,
        ...(yield* toPage(rows, limit, (row) => row.id, showListed(yield* DateTime.now)))
      })
    }),
    cancel: Effect.gen(function* () {
      const { id, userId } = yield* owned
      yield* refuseUnknownQuery([])
      return yield* json(TaskBatch)(yield* batches.cancel(userId, id))
    })
  }
})

const decodeId = Schema.decodeUnknownOption(TaskBatchId)

const readQuery = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownEffect(schema, bodyParseOptions)
  return Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) =>
    Effect.mapError(decode(query), ({ issue }) =>
      invalid(
        faultsOf(issue).map(({ detail, pointer }) => ({
          pointer: `#/query${pointer.slice(1)}`,
          detail
        }))
      )
    )
  )
}

const json = <S extends Schema.ConstraintEncoder<unknown>>(schema: S) => {
  const encode = Schema.encodeEffect(schema)
  return (value: S["Type"]) =>
    Effect.map(Effect.orDie(encode(value)), (body) =>
      HttpServerResponse.jsonUnsafe(body, { headers: { "cache-control": "no-store" } })
    )
}
