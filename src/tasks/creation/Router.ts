import { Context, Effect, Layer, Option } from "effect"
import type { JsonSchema } from "effect"
import { namesIn, shownEntry } from "../../catalog/AliasTargets.ts"
import { Catalog } from "../../catalog/Catalog.ts"
import { modelPath } from "../../catalog/CatalogContent.ts"
import type { CatalogVersion } from "../../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { endingOf } from "../../catalog/PriceRow.ts"
import type { Ending } from "../../catalog/PriceRow.ts"
import type { TaskView } from "../../db/TaskRow.ts"
import type { Credits } from "../../domain/Credits.ts"
import type { TaskId, UserId } from "../../domain/Ids.ts"
import { problem } from "../../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../../domain/Problem.ts"
import { CatalogVersions } from "../../process/catalogs/CatalogVersions.ts"
import { bodySchemaOf, bodySchemaOfAll, refusedFields } from "../../vendors/BodyFaults.ts"
import { VendorClient } from "../../vendors/VendorClient.ts"
import { makeUrlCheck } from "../../webhooks/WebhookUrl.ts"
import { makeCancelNow } from "../completion/TaskCompletion.ts"
import { makeCancelResponse } from "../responses/CancelResponse.ts"
import { TaskStore } from "../TaskStore.ts"
import { priceRequest } from "./Offer.ts"
import type { PricedRequest } from "./Offer.ts"
import { noModel, Offers } from "./Offers.ts"
import type { CreateRequest, ModelPath } from "./TaskAcceptance.ts"
import { createdId, replaysWith, TaskCreation } from "./TaskCreation.ts"
import type { Created } from "./TaskCreation.ts"

/** The task at a path, and when its model will be removed, if that is announced. */
export interface FoundTask {
  readonly task: TaskView
  readonly ending: Ending | undefined
}

/** The price of a request, and when its model will be removed, if that is announced. */
export interface Quote {
  /** The amount that would be held. For an alias: the price of its most expensive model. */
  readonly amount: Credits
  readonly ending: Ending | undefined
  /** Present for an alias. */
  readonly alias?: Pick<PricedRequest, "models" | "leftOut">
}

/** A model of the catalog as clients can call it. */
export interface RoutedModel {
  readonly entry: CatalogEntry
  /** Omits fields that the upstream model does not accept. */
  readonly bodySchema: JsonSchema.JsonSchema
  readonly sandbox: boolean
  /** The models of an alias. */
  readonly candidates?: ReturnType<typeof namesIn>
}

type Failure = Problem | StoreUnavailable

/** The entry point: resolves the model, decodes the body, prices, accepts; finds and cancels tasks. */
export class Router extends Context.Service<
  Router,
  {
    /** Every model and alias of the catalog. */
    readonly models: () => ReadonlyArray<RoutedModel>
    /**
     * The models that a request at this path may use. An API key with a list of models must allow every one of them.
     */
    readonly modelsAt: (path: ModelPath) => ReadonlyArray<string>
    /** Whether the entry's upstream model accepts these fields with these values. */
    readonly takes: (entry: CatalogEntry, fields: Readonly<Record<string, unknown>>) => boolean
    readonly create: (request: CreateRequest) => Effect.Effect<Created, Failure>
    /** The catalog of the task that this request created before. Fails with `refusal` if there is none. */
    readonly catalogOfRepeat: (
      request: Pick<CreateRequest, "idempotency" | "principal">,
      refusal: Problem
    ) => Effect.Effect<CatalogVersion, Failure>
    /** Validates the request and returns its price. Creates no task, hold or event. */
    readonly quote: (path: ModelPath, body: unknown) => Effect.Effect<Quote, Problem>
    /** Fails with 2005 unless the path and the owner match the task. */
    readonly find: (
      userId: UserId,
      path: ModelPath,
      id: TaskId
    ) => Effect.Effect<FoundTask, Failure>
    /** The same for a task of the caller that has already been read. */
    readonly matchPath: (
      path: ModelPath,
      id: TaskId,
      task: Option.Option<TaskView>
    ) => Effect.Effect<FoundTask, Problem>
    /** Fails the task with error 4004 and releases its hold. Fails with 2010 if the task has already ended. */
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
      const offers = yield* Offers
      const creation = yield* TaskCreation
      const tasks = yield* TaskStore
      const { replayOr } = replaysWith(tasks)
      const versions = yield* CatalogVersions
      const vendors = yield* VendorClient
      const checkUrl = yield* makeUrlCheck
      const cancelNow = yield* makeCancelNow
      const cancelResponse = yield* makeCancelResponse

      // Does not look the model up, because a model may leave the catalog while its tasks remain
      const matchPath = (path: ModelPath, id: TaskId, found: Option.Option<TaskView>) => {
        const { find, findAlias } = catalog.current()
        const entry = find(path.vendor, path.model, path.action)
        if (Option.isSome(found) && isAt(found.value, path)) {
          const ending = Option.getOrUndefined(Option.map(entry, endingOf))
          return Effect.succeed({ task: found.value, ending })
        }
        return Effect.fail(
          Option.isNone(entry) && Option.isNone(findAlias(path.vendor, path.model, path.action))
            ? noModel(path)
            : problem(2005, `There is no task ${id} at ${modelPath(path)}`)
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
        models: () => routedModels(catalog.current(), vendors),
        modelsAt: ({ action, model, vendor }) =>
          Option.match(catalog.current().findAlias(vendor, model, action), {
            onNone: () => [model],
            onSome: ({ targets }) => targets.map((it) => it.model.model)
          }),
        takes: (entry, fields) => refusedFields(entry, fields).length === 0,
        create: (request) => creation.create(offers.at(request.path), request),
        catalogOfRepeat: Effect.fnUntraced(function* (request, refusal) {
          const earlier = yield* replayOr(request, refusal)
          const task = yield* tasks.view(yield* createdId(earlier))
          if (Option.isNone(task)) return yield* refusal
          const version = yield* versions.withId(task.value.catalogId)
          return Option.isNone(version) ? yield* refusal : version.value
        }),
        quote: Effect.fn("Router.quote")(function* (path, body) {
          const offer = yield* offers.at(path)
          const { leftOut, models, most } = yield* priceRequest(offer, body, checkUrl)
          return offer.alias === undefined
            ? { amount: most, ending: endingOf(offer.models[0].entry) }
            : { amount: most, ending: undefined, alias: { models, leftOut } }
        }),
        find,
        matchPath,
        cancel: Effect.fn("Router.cancel")(function* (userId, path, id) {
          const { task } = yield* find(userId, path, id)
          const isOfModel = task.resultKind === "responses" || task.resultKind === "batches"
          const cancelled = yield* isOfModel ? cancelResponse(task) : cancelNow(task)
          if (!cancelled) return yield* problem(2010, `Task ${id} has already ended`)
          return yield* find(userId, path, id)
        })
      })
    })
  )
}

const isAt = (task: TaskView, path: ModelPath): boolean =>
  task.vendor === path.vendor && task.model === path.model && task.action === path.action

const routedModels = (
  { aliases, all }: CatalogVersion,
  vendors: VendorClient["Service"]
): ReadonlyArray<RoutedModel> => {
  const isSandbox = ({ adapter }: CatalogEntry) => vendors.isSandbox(adapter)
  return [
    ...all.map((entry) => ({
      entry,
      bodySchema: bodySchemaOf(entry),
      sandbox: isSandbox(entry)
    })),
    ...aliases.map((alias) => ({
      entry: shownEntry(alias),
      bodySchema: bodySchemaOfAll(alias.targets.map(({ model }) => model)),
      sandbox: alias.targets.every(({ model }) => isSandbox(model)),
      candidates: namesIn(alias.targets)
    }))
  ]
}
