import { Effect, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Files } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import { bodyParseOptions, faultsOf } from "../../catalog/FieldFaults.ts"
import { AppConfig } from "../../config/Config.ts"
import { cancelBatch, createBatch, getBatch, NewBatch } from "../../contract/BatchesApi.ts"
import type { BatchObjectList } from "../../contract/BatchesApi.ts"
import { batchIdOf, taskOfBatch } from "../../domain/Ids.ts"
import { customIdCharactersMax } from "../../domain/limits/FileLimits.ts"
import { pageSizeDefault, pageSizeMax } from "../../domain/limits/Limits.ts"
import { invalid } from "../../domain/Problem.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import { VendorBatches } from "../../tasks/vendorbatches/VendorBatches.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"
import { makeUrlCheck } from "../../webhooks/WebhookUrl.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { readAttachments } from "../tasks/Attachments.ts"
import { makeBatchHeaders, makeBatchOrder, makeCreatedResponse } from "../tasks/VendorBatchOrder.ts"
import type { BatchOrder } from "../tasks/VendorBatchOrder.ts"
import { batchOf } from "./BatchObject.ts"

const vendor = "openai"

/** Batches with OpenAI's API: create, read, list and cancel. docs/reference/vendor-batches.md */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const create = yield* makeCreate
    const { cancel, get, list } = yield* makeReads
    yield* router.addAll(
      (["", "/vendors/openai"] as const)
        .flatMap((base) => [
          resource(`${base}${createBatch.path}`, { POST: create, GET: list }),
          resource(`${base}${getBatch.path}`, { GET: get }),
          resource(`${base}${cancelBatch.path}`, { POST: cancel })
        ])
        .flat()
    )
  })
)

const makeShow = Effect.map(
  makeBatchHeaders,
  (headersOf) =>
    (row: VendorBatchRow, more: Readonly<Record<string, string>> = {}) =>
      HttpServerResponse.jsonUnsafe(batchOf(row), { headers: { ...headersOf(row), ...more } })
)

const decodeBatch = Schema.decodeUnknownEffect(NewBatch, bodyParseOptions)

const makeCreate = Effect.gen(function* () {
  const admitCreate = yield* makeAdmitCreate
  const batches = yield* VendorBatches
  const order = yield* makeOrder
  const show = yield* makeShow
  const { creates } = yield* Admission
  const { baseUrl, serviceName } = yield* AppConfig
  const respond = yield* makeCreatedResponse

  return Effect.gen(function* () {
    const { isSignedIn, principal } = yield* admitCreate()
    yield* refuseUnknownQuery([])
    const request = yield* HttpServerRequest.HttpServerRequest
    const given = yield* readJsonBody
    yield* isSignedIn
    const asked = yield* decodeBatch(given.value).pipe(
      Effect.mapError(({ issue }) => invalid(faultsOf(issue)))
    )
    const accept = {
      principal,
      traceId: (yield* RequestTrace).traceId,
      idempotency: yield* readIdempotencyKey(request, given),
      maxCost: yield* readMaxCost(request.headers, maxCostHeader(serviceName))
    }
    const sandbox = batches.isSandbox(vendor)
    const created = yield* counted(
      creates,
      principal.userId,
      batches.create(accept, sandbox, order(accept, asked, sandbox))
    )
    const id = batchIdOf(yield* createdId(created))
    const named = { vendor, userId: principal.userId, id }
    return yield* respond(created, { named, url: `${baseUrl}${createBatch.path}/${id}`, show })
  })
})

/** Reads and prices the file that the request names. */
const makeOrder = Effect.gen(function* () {
  const files = yield* Files
  const order = yield* makeBatchOrder
  const checkUrl = yield* makeUrlCheck

  return Effect.fnUntraced(function* (
    accept: BatchOrder["accept"],
    given: typeof NewBatch.Type,
    sandbox: boolean
  ) {
    const { endpoint, input_file_id: fileId } = given
    const attached = yield* readAttachments(given, checkUrl)
    const file = yield* inputOf(files, accept.principal.userId, fileId)
    const shape = {
      body: "body",
      fixed: { method: "POST", url: endpoint },
      at: "#/lines",
      customId,
      // OpenAI allows one model per batch
      modelsMax: 1
    } as const
    return yield* order({ accept, vendor, endpoint, file, shape, attached, sandbox })
  })
})

const customId = {
  test: (text: string) =>
    text.length > 0 &&
    text.length <= customIdCharactersMax &&
    text.isWellFormed() &&
    !text.includes("\0"),
  expected: `a string of 1 to ${customIdCharactersMax} characters`
}

/** The file that the request names. Fails if it belongs to another user. */
const inputOf = (
  files: Files["Service"],
  userId: FileRow["userId"],
  id: FileRow["id"]
): Effect.Effect<FileRow, Effect.Error<ReturnType<Files["Service"]["get"]>>> =>
  Effect.filterOrFail(
    files.get(userId, id),
    ({ purpose }) => purpose === "batch",
    () => notForBatches
  )

const notForBatches = invalid([
  { pointer: "#/input_file_id", detail: "Expected a file with the purpose batch" }
])

const makeReads = Effect.gen(function* () {
  const admit = yield* makeAdmitInference
  const batches = yield* VendorBatches
  const show = yield* makeShow

  const named = Effect.gen(function* () {
    const { batch_id: id = "" } = yield* HttpRouter.params
    const { principal } = yield* admit(Option.none())
    yield* refuseUnknownQuery([])
    return { vendor, id, userId: principal.userId }
  })

  return {
    get: Effect.gen(function* () {
      return show(yield* batches.get(yield* named))
    }),
    cancel: Effect.gen(function* () {
      return show(yield* batches.cancel(yield* named))
    }),
    list: Effect.gen(function* () {
      const { principal } = yield* admit(Option.none())
      const { after, limit } = yield* readPage
      const page = { vendor, after, limit: limit + 1 }
      const rows = yield* batches.list(principal.userId, page)
      const shown = rows.slice(0, limit).map(batchOf)
      const body: typeof BatchObjectList.Type = {
        object: "list",
        data: shown,
        first_id: shown[0]?.id ?? null,
        last_id: shown.at(-1)?.id ?? null,
        has_more: rows.length > limit
      }
      return HttpServerResponse.jsonUnsafe(body, { headers: { "cache-control": "no-store" } })
    })
  }
})

const readPage = Effect.gen(function* () {
  yield* refuseUnknownQuery(["after", "limit"])
  const query = yield* HttpServerRequest.ParsedSearchParams
  const { after, limit = String(pageSizeDefault) } = query
  const id = typeof after === "string" ? taskOfBatch(after) : Option.none()
  const size = typeof limit === "string" && /^\d{1,3}$/u.test(limit) ? Number(limit) : 0
  const faults = [
    ...(after !== undefined && Option.isNone(id)
      ? [{ pointer: "#/query/after", detail: "Expected the id of a batch" }]
      : []),
    ...(size < 1 || size > pageSizeMax
      ? [{ pointer: "#/query/limit", detail: `Expected a whole number from 1 to ${pageSizeMax}` }]
      : [])
  ]
  if (faults.length > 0) return yield* invalid(faults)
  return { after: Option.getOrUndefined(id), limit: size }
})
