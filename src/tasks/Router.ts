import { Clock, Context, Effect, Layer, Option } from "effect"
import type { JsonSchema } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { quote } from "../catalog/Price.ts"
import { endingOf, priceAt } from "../catalog/PriceRow.ts"
import type { Ending } from "../catalog/PriceRow.ts"
import type { TaskView } from "../db/TaskRow.ts"
import type { Credits } from "../domain/Credits.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { WorkNotifier } from "../process/WorkNotifier.ts"
import { bodySchemaOf } from "../vendors/BodyFaults.ts"
import { VendorClient } from "../vendors/VendorClient.ts"
import { decodeRequest } from "./RequestBody.ts"
import { TaskCompletion } from "./TaskCompletion.ts"
import { TaskCreation } from "./TaskCreation.ts"
import type { Created, CreateRequest, ModelPath } from "./TaskCreation.ts"
import { TaskStore } from "./TaskStore.ts"

export type { ModelPath } from "./TaskCreation.ts"

/** A task of a path, and what its vendor has announced of the model. */
export interface FoundTask {
  readonly task: TaskView
  readonly ending: Ending | undefined
}

/** The price of a request, and what its vendor has announced of the model. */
export interface Quote {
  readonly amount: Credits
  readonly ending: Ending | undefined
}

/** A model of the catalog as clients may call it. */
export interface RoutedModel {
  readonly entry: CatalogEntry
  /** Without fields that its upstream model does not take. */
  readonly bodySchema: JsonSchema.JsonSchema
  readonly sandbox: boolean
}

type Failure = Problem | StoreUnavailable

/** The entry point: resolves the model, decodes the body, prices, accepts; finds and cancels tasks. */
export class Router extends Context.Service<
  Router,
  {
    /** Every model of the catalog that is sold now. */
    readonly models: () => ReadonlyArray<RoutedModel>
    readonly create: (request: CreateRequest) => Effect.Effect<Created, Failure>
    /** Validates the request and returns the price: no task, no hold, no event. */
    readonly quote: (path: ModelPath, body: unknown) => Effect.Effect<Quote, Problem>
    /** Fails with 2005 unless the vendor, the model and the owner are the task's. */
    readonly find: (
      userId: UserId,
      path: ModelPath,
      id: TaskId
    ) => Effect.Effect<FoundTask, Failure>
    /** The same for a task of the caller that was read before. */
    readonly matchPath: (
      path: ModelPath,
      id: TaskId,
      task: Option.Option<TaskView>
    ) => Effect.Effect<FoundTask, Problem>
    /** Fails the task with 4004 and releases its hold; 2010 when it has ended. */
    readonly cancel: (
      userId: UserId,
      path: ModelPath,
      id: TaskId
    ) => Effect.Effect<FoundTask, Failure>
  }
>()("gateway/tasks/Router") {
  static readonly layer = Layer.effect(
    Router,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const creation = yield* TaskCreation
      const tasks = yield* TaskStore
      const completion = yield* TaskCompletion
      const vendors = yield* VendorClient
      const notifier = yield* WorkNotifier

      /** What has no price now is not sold. */
      const resolve = Effect.fnUntraced(function* (path: ModelPath) {
        const { find, id } = catalog.current()
        const entry = yield* Effect.mapError(
          Effect.fromOption(find(path.vendor, path.model, path.action)),
          () => noModel(path)
        )
        const price = priceAt(entry, yield* Clock.currentTimeMillis)
        if (price === undefined) return yield* noPrice(path)
        return { entry, price, catalogId: id }
      })

      // A model may leave the catalog, its tasks stay
      const matchPath = (path: ModelPath, id: TaskId, found: Option.Option<TaskView>) => {
        const entry = catalog.current().find(path.vendor, path.model, path.action)
        if (Option.isSome(found) && isAt(found.value, path)) {
          const ending = Option.getOrUndefined(Option.map(entry, endingOf))
          return Effect.succeed({ task: found.value, ending })
        }
        return Effect.fail(
          Option.isNone(entry)
            ? noModel(path)
            : problem(2005, `There is no task ${id} at ${pathOf(path)}`)
        )
      }

      const find = Effect.fnUntraced(function* (userId: UserId, path: ModelPath, id: TaskId) {
        const found = yield* tasks.view(id)
        return yield* matchPath(
          path,
          id,
          Option.filter(found, (row) => row.userId === userId)
        )
      })

      return Router.of({
        models: () =>
          catalog.current().all.map((entry) => ({
            entry,
            bodySchema: bodySchemaOf(entry),
            sandbox: vendors.isSandbox(entry.vendor, entry.adapter)
          })),
        create: (request) =>
          Effect.flatMap(resolve(request.path), (sold) => creation.create(sold, request)),
        quote: Effect.fn("Router.quote")(function* (path, body) {
          const sold = yield* resolve(path)
          const { body: decoded } = yield* decodeRequest(sold.entry, body)
          return { amount: quote(sold, decoded), ending: endingOf(sold.entry) }
        }),
        find,
        matchPath,
        cancel: Effect.fn("Router.cancel")(function* (userId, path, id) {
          const { task } = yield* find(userId, path, id)
          const cancelled = yield* completion.fail(task, Option.none(), {
            code: 4004,
            title: "Cancelled",
            detail: "The task was cancelled by its owner"
          })
          if (!cancelled) return yield* problem(2010, `Task ${id} has already ended`)
          yield* notifier.stopTask(id)
          return yield* find(userId, path, id)
        })
      })
    })
  )
}

const noModel = (path: ModelPath): Problem => problem(2006, `There is no model at ${pathOf(path)}`)

const noPrice = (path: ModelPath): Problem =>
  problem(2006, `The model at ${pathOf(path)} has no price on this day`)

const isAt = (task: TaskView, path: ModelPath): boolean =>
  task.vendor === path.vendor && task.model === path.model && task.action === path.action

const pathOf = ({ action, model, vendor }: ModelPath): string =>
  `/vendors/${vendor}/v1/${model}/${action}`
