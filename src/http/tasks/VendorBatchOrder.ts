import { Duration, Effect, Option } from "effect"
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
import { FairShares } from "../../domain/FairShares.ts"
import { batchDeadlineHours, plansAtOnce } from "../../domain/limits/FileLimits.ts"
import { Problem, problem } from "../../domain/Problem.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import { planBatch } from "../../passthrough/batches/BatchPlan.ts"
import type { BatchShape, PlannedBatch } from "../../passthrough/batches/BatchPlan.ts"
import type { PricedOrder } from "../../tasks/creation/TaskCreation.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"
import { allowsModel, modelNotAllowed } from "../../users/ApiKeys.ts"
import { headerOf } from "./CreatedTask.ts"

/** What vendors' batches in both formats share. docs/reference/vendor-batches.md */

/** The create of a batch, whose requests are in a file. */
export interface BatchOrder {
  readonly accept: Omit<PricedOrder["request"], "path">
  readonly vendor: string
  /** The endpoint path of all its requests. */
  readonly endpoint: string
  readonly file: Pick<FileRow, "id" | "bytes">
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
    const { accept, attached, endpoint, file, more, sandbox, vendor } = order
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
        deadline: Duration.hours(batchDeadlineHours)
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
  detail: "Too many batches of this user wait to be read: send one after another",
  retryAfterSeconds: 5
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
