import { Cause, Duration, Effect, Option, Result } from "effect"
import type { DateTime } from "effect"
import { HttpServerResponse } from "effect/http"
import { Files } from "../../artifacts/files/Files.ts"
import type { FileRow } from "../../artifacts/files/Files.ts"
import type { Attachments } from "../../catalog/bodies/Attachments.ts"
import type { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import { Catalog } from "../../catalog/Catalog.ts"
import { batchModel } from "../../catalog/CatalogContent.ts"
import type { TokenModel } from "../../catalog/OpenRoutes.ts"
import { endingOf } from "../../catalog/PriceRow.ts"
import { AppConfig } from "../../config/Config.ts"
import * as Credits from "../../domain/Credits.ts"
import { batchDeadlineHours, plansAtOnce } from "../../domain/limits/FileLimits.ts"
import { Problem, problem } from "../../domain/Problem.ts"
import { FairShares } from "../../domain/shares/FairShares.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { planBatch } from "../../passthrough/batches/BatchPlan.ts"
import type { BatchShape, PlannedBatch } from "../../passthrough/batches/BatchPlan.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import type { Created, PricedOrder } from "../../tasks/creation/TaskCreation.ts"
import { VendorBatches } from "../../tasks/vendorbatches/VendorBatches.ts"
import type { NamedBatch, VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"
import { allowsModel, modelNotAllowed } from "../../users/ApiKeys.ts"
import { problemResponse } from "../server/problems/Problems.ts"
import { headerOf, makeCreatedHeaders } from "./CreatedTask.ts"
import { taskProblem } from "./TaskProblem.ts"

/** What vendors' batches in both formats share. docs/reference/vendor-batches.md */

/** The create of a batch, whose requests are in a file. */
export interface BatchOrder {
  readonly accept: Omit<PricedOrder["request"], "path">
  readonly vendor: string
  /** The endpoint path of all its requests. */
  readonly endpoint: string
  readonly file: Pick<FileRow, "id" | "bytes">
  /** When the file expires once the batch is accepted. Absent: its expiry stays. */
  readonly fileUntil?: DateTime.Utc
  readonly shape: Omit<BatchShape, "catalog" | "route" | "nowMillis">
  readonly attached: Attachments
  /** What else to store with the batch. */
  readonly more?: (planned: PlannedBatch) => Pick<BatchBody, "marked" | "beta">
  readonly sandbox: boolean
}

/** Reads the file, plans every request, and prices the batch. */
export const makeBatchOrder = Effect.gen(function* () {
  const catalog = yield* Catalog
  const files = yield* Files
  const places = new FairShares(plansAtOnce)

  return Effect.fnUntraced(function* (order: BatchOrder) {
    const { accept, attached, endpoint, file, fileUntil, more, sandbox, vendor } = order
    const { principal } = accept
    const { upstream } = catalog.current()
    const found = upstream.match(vendor, "POST", endpoint)
    if (found._tag !== "Open") return yield* problem(2006, `POST ${endpoint} is not offered here`)
    const nowMillis = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
    const shape = { ...order.shape, catalog: upstream, route: found.route, nowMillis }
    const planned = yield* places
      .within(principal.userId)(
        Effect.flatMap(files.open(file), (stream) => planBatch(shape, stream))
      )
      .pipe(Effect.catchTag("ShareExhausted", () => Effect.fail(tooManyPlans)))
    const { hold, models, requests } = planned
    const allowedBy = yield* Effect.forEach(models, ({ model, name }) =>
      allowsModel(principal, [name, model.model])
        ? Effect.succeed(allowsModel(principal, [name]) ? name : model.model)
        : modelNotAllowed(name)
    )
    const [{ name }] = models
    const entry = batchModel(upstream, vendor, name)
    if (Option.isNone(entry)) return yield* problem(2006, `${name} is not offered in batches`)
    const stored = {
      input_file_id: file.id,
      bytes: Number(file.bytes),
      endpoint,
      requests,
      ...(models.length > 1 ? { models: models.map((it) => it.name) } : {})
    }
    return {
      request: { ...accept, path: { vendor, model: name, action: "batches" } },
      offer: {
        catalogId: upstream.id,
        sandbox,
        allowedBy,
        deadline: Duration.hours(batchDeadlineHours),
        ...(fileUntil === undefined ? {} : { fileUntil })
      },
      priced: {
        body: { ...stored, ...more?.(planned) },
        media: [],
        ...attached,
        models: [{ entry: entry.value, amount: hold }],
        leftOut: [],
        most: hold
      },
      ending: endingOf(firstToEnd(models))
    } satisfies PricedOrder
  })
})

/** The model that its vendor will remove first, if any is announced to be removed. */
const firstToEnd = (models: PlannedBatch["models"]): TokenModel =>
  models.reduce(
    (first, { model }) =>
      model.sunset !== undefined && (first.sunset === undefined || model.sunset < first.sunset)
        ? model
        : first,
    models[0].model
  )

const tooManyPlans = new Problem({
  code: 1202,
  detail: "Too many batches of this user are waiting to be read: send one after another",
  retryAfterSeconds: 5
})

/**
 * The response to a create, also to a repeat: the batch in its state at creation. The task exists, so a failure to read
 * it must not make a client repeat the request. docs/reference/vendor-batches.md
 */
export const makeCreatedResponse = Effect.gen(function* () {
  const batches = yield* VendorBatches
  const { serviceName } = yield* AppConfig
  const headersOf = makeCreatedHeaders(headerOf(serviceName))
  return Effect.fnUntraced(function* (created: Created, { named, show, url }: CreatedBatch) {
    const headers = headersOf(created)
    const row = yield* Effect.catchCause(Effect.asSome(batches.get(named)), (cause) => {
      const failed = Cause.findError(cause)
      // The batch was deleted
      return Result.isSuccess(failed) && failed.success._tag === "Problem"
        ? Effect.fail(failed.success)
        : Effect.succeedNone
    })
    if (Option.isSome(row)) return show(createdRowOf(row.value), headers)
    const fault = taskProblem(yield* createdId(created), url, Option.none())
    return HttpServerResponse.setHeaders(yield* problemResponse(fault), headers)
  })
})

interface CreatedBatch {
  readonly named: NamedBatch
  readonly url: string
  readonly show: (
    row: VendorBatchRow,
    headers: Readonly<Record<string, string>>
  ) => HttpServerResponse.HttpServerResponse
}

const createdRowOf = (row: VendorBatchRow): VendorBatchRow => ({
  ...row,
  status: "pending",
  startedAt: null,
  captured: null,
  error: null,
  batchStatus: null,
  cancellingAt: null,
  outputFile: null,
  errorFile: null,
  completed: null,
  failed: null,
  usage: null
})

/** Headers of a response that contains a batch. */
export const makeBatchHeaders = Effect.gen(function* () {
  const { serviceName } = yield* AppConfig
  const header = headerOf(serviceName)
  return (row: VendorBatchRow): Readonly<Record<string, string>> => ({
    "cache-control": "no-store",
    [header("cost")]: Credits.format(costOf(row)),
    [header("task-id")]: row.id,
    ...(row.sandbox ? { [header("sandbox")]: "true" } : {})
  })
})

const costOf = ({ captured, price, status }: VendorBatchRow): Credits.Credits =>
  captured ?? (isTerminal(status) ? Credits.zero : price)
