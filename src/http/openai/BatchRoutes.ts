import { Duration, Effect, Option, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Files } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import { splitAttachments } from "../../catalog/bodies/Attachments.ts"
import { Catalog } from "../../catalog/Catalog.ts"
import { batchModel } from "../../catalog/CatalogContent.ts"
import { bodyParseOptions, faultsOf } from "../../catalog/FieldFaults.ts"
import { endingOf } from "../../catalog/PriceRow.ts"
import { AppConfig } from "../../config/Config.ts"
import { cancelBatch, createBatch, getBatch, NewBatch } from "../../contract/BatchesApi.ts"
import type { BatchObjectList } from "../../contract/BatchesApi.ts"
import * as Credits from "../../domain/Credits.ts"
import { FairShares } from "../../domain/FairShares.ts"
import { batchDeadlineHours, plansAtOnce } from "../../domain/FileLimits.ts"
import { batchIdOf, taskOfBatch } from "../../domain/Ids.ts"
import { pageSizeDefault, pageSizeMax } from "../../domain/Limits.ts"
import { invalid, Problem, problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/Task.ts"
import { planBatch } from "../../passthrough/batches/BatchPlan.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import type { PricedOrder } from "../../tasks/creation/TaskCreation.ts"
import { VendorBatches } from "../../tasks/vendorbatches/VendorBatches.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"
import { allowsModel, modelNotAllowed } from "../../users/ApiKeys.ts"
import { makeAdmitInference } from "../server/access/Authentication.ts"
import { makeAdmitCreate } from "../server/access/CreateAdmission.ts"
import { readJsonBody } from "../server/bodies/JsonBody.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"
import { RequestTrace } from "../server/listener/RequestTrace.ts"
import { maxCostHeader, readMaxCost } from "../server/MaxCost.ts"
import { refuseUnknownQuery } from "../server/QueryNames.ts"
import { resource } from "../server/Resource.ts"
import { headerOf, makeCreatedHeaders } from "../tasks/CreatedTask.ts"
import { batchOf } from "./BatchObject.ts"

/** Batches as OpenAI's clients create, read and cancel them. docs/reference/vendor-batches.md */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const create = yield* makeCreate
    const { cancel, get, list } = yield* makeReads
    yield* router.addAll(
      (["", "/vendors/openai"] as const).flatMap((base) => [
        resource(`${base}${createBatch.path}`, { POST: create, GET: list }),
        resource(`${base}${getBatch.path}`, { GET: get }),
        resource(`${base}${cancelBatch.path}`, { POST: cancel })
      ])
    )
  })
)

const makeShow = Effect.gen(function* () {
  const { serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  return (row: VendorBatchRow, more: Readonly<Record<string, string>> = {}) =>
    HttpServerResponse.jsonUnsafe(batchOf(row), {
      headers: {
        "cache-control": "no-store",
        [header("cost")]: Credits.format(costOf(row)),
        [header("task-id")]: row.id,
        ...(row.sandbox ? { [header("sandbox")]: "true" } : {}),
        ...more
      }
    })
})

const costOf = ({ captured, price, status }: VendorBatchRow): Credits.Credits =>
  captured ?? (isTerminal(status) ? Credits.zero : price)

const decodeBatch = Schema.decodeUnknownEffect(NewBatch, bodyParseOptions)

const makeCreate = Effect.gen(function* () {
  const admitCreate = yield* makeAdmitCreate
  const batches = yield* VendorBatches
  const order = yield* makeOrder
  const show = yield* makeShow
  const { creates } = yield* Admission
  const { serviceName } = yield* AppConfig
  const createdHeaders = makeCreatedHeaders(headerOf(serviceName))

  return Effect.gen(function* () {
    const { principal } = yield* admitCreate()
    yield* refuseUnknownQuery([])
    const request = yield* HttpServerRequest.HttpServerRequest
    const given = yield* readJsonBody
    const asked = yield* decodeBatch(given.value).pipe(
      Effect.mapError(({ issue }) => invalid(faultsOf(issue)))
    )
    const accept = {
      principal,
      traceId: (yield* RequestTrace).traceId,
      idempotency: yield* readIdempotencyKey(request, given),
      maxCost: yield* readMaxCost(request.headers, maxCostHeader(serviceName))
    }
    const sandbox = batches.isSandbox("openai")
    const created = yield* counted(
      creates,
      principal.userId,
      batches.create(accept, sandbox, order(accept, asked, sandbox))
    )
    const id = yield* createdId(created)
    return show(yield* batches.get(principal.userId, batchIdOf(id)), createdHeaders(created))
  })
})

type Accept = Omit<PricedOrder["request"], "path">

/** Reads the file, plans every request, and prices the batch. */
const makeOrder = Effect.gen(function* () {
  const catalog = yield* Catalog
  const files = yield* Files
  const places = new FairShares(plansAtOnce)

  return Effect.fnUntraced(function* (
    accept: Accept,
    { endpoint, input_file_id: fileId, metadata: given }: typeof NewBatch.Type,
    sandbox: boolean
  ) {
    const { principal } = accept
    const { faults, metadata } = splitAttachments(
      (given ?? null) === null ? {} : { metadata: given }
    )
    if (faults.length > 0) return yield* invalid(faults)
    const file = yield* inputOf(files, principal.userId, fileId)
    const { upstream } = catalog.current()
    const found = upstream.match("openai", "POST", endpoint)
    if (found._tag !== "Open") return yield* problem(2006, `POST ${endpoint} is not offered here`)
    const shape = {
      catalog: upstream,
      route: found.route,
      body: "body",
      fixed: { method: "POST", url: endpoint },
      nowMillis: yield* nowMillis
    } as const
    const planned = yield* places
      .within(principal.userId)(
        Effect.flatMap(files.open(file), (stream) => planBatch(shape, stream))
      )
      .pipe(Effect.catchTag("ShareExhausted", () => Effect.fail(tooManyPlans)))
    const { hold, model, name, requests } = planned
    if (!allowsModel(principal, [name, model.model])) return yield* modelNotAllowed(name)
    const entry = batchModel(upstream, "openai", name)
    if (Option.isNone(entry)) return yield* problem(2006, `${name} is not offered in batches`)
    return {
      request: { ...accept, path: { vendor: "openai", model: name, action: "batches" } },
      offer: {
        catalogId: upstream.id,
        sandbox,
        allowedBy: [allowsModel(principal, [name]) ? name : model.model],
        deadline: Duration.hours(batchDeadlineHours)
      },
      priced: {
        body: { input_file_id: file.id, bytes: Number(file.bytes), endpoint, requests },
        media: [],
        metadata,
        webhook: null,
        models: [{ entry: entry.value, amount: hold }],
        leftOut: [],
        most: hold
      },
      ending: endingOf(model)
    } satisfies PricedOrder
  })
})

const nowMillis = Effect.clockWith((clock) => clock.currentTimeMillis)

const tooManyPlans = new Problem({
  code: 1202,
  detail: "Too many batches of this user wait to be read: send one after another",
  retryAfterSeconds: 5
})

/** The file of the request, which only its owner can name. */
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
    return { id, userId: principal.userId }
  })

  return {
    get: Effect.gen(function* () {
      const { id, userId } = yield* named
      return show(yield* batches.get(userId, id))
    }),
    cancel: Effect.gen(function* () {
      const { id, userId } = yield* named
      return show(yield* batches.cancel(userId, id))
    }),
    list: Effect.gen(function* () {
      const { principal } = yield* admit(Option.none())
      const { after, limit } = yield* readPage
      const page = { vendor: "openai", after, limit: limit + 1 }
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
