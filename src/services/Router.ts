import { Context, Effect, Layer, Option } from "effect"
import type { Credits } from "../domain/Credits.ts"
import type { TaskId, UserId } from "../domain/Ids.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem, StoreUnavailable } from "../domain/Problem.ts"
import { Catalog } from "../models/Catalog.ts"
import type { CatalogEntry } from "../models/CatalogEntry.ts"
import { quote } from "../models/Price.ts"
import { TaskStore } from "../store/TaskStore.ts"
import type { TaskRow } from "../store/TaskStore.ts"
import { decodeRequest, TaskCreation } from "./TaskCreation.ts"
import type { Created, CreateRequest, ModelPath } from "./TaskCreation.ts"
import { TaskEnding } from "./TaskEnding.ts"

export type { ModelPath } from "./TaskCreation.ts"

/** A task and the catalog entry of its path. */
export interface Found {
  readonly task: TaskRow
  readonly entry: CatalogEntry
}

type Failure = Problem | StoreUnavailable

/** The one door in: resolves the model, decodes the body, prices, accepts; finds and cancels tasks. */
export class Router extends Context.Service<
  Router,
  {
    readonly create: (request: CreateRequest) => Effect.Effect<Created, Failure>
    /** Validates all and answers the price: no task, no hold, no event. Contract 2, `dry_run`. */
    readonly quote: (path: ModelPath, body: unknown) => Effect.Effect<Credits, Problem>
    /** A task is found under its own vendor, model and owner only, else 2005. Contract 3. */
    readonly find: (userId: UserId, path: ModelPath, id: TaskId) => Effect.Effect<Found, Failure>
    /** Fails the task with 4004 and releases its hold; 2010 when it has ended. Contract 2. */
    readonly cancel: (userId: UserId, path: ModelPath, id: TaskId) => Effect.Effect<Found, Failure>
  }
>()("gateway/services/Router") {
  static readonly layer = Layer.effect(
    Router,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const creation = yield* TaskCreation
      const tasks = yield* TaskStore
      const ending = yield* TaskEnding

      const resolve = (path: ModelPath) =>
        Effect.mapError(Effect.fromOption(catalog.find(path.vendor, path.model, path.action)), () =>
          problem(2006, `There is no model at ${pathOf(path)}`)
        )

      const find = Effect.fn("Router.find")(function* (
        userId: UserId,
        path: ModelPath,
        id: TaskId
      ) {
        const entry = yield* resolve(path)
        const found = yield* tasks.find(id)
        const task = Option.filter(
          found,
          (row) =>
            row.userId === userId &&
            row.vendor === path.vendor &&
            row.model === path.model &&
            row.action === path.action
        )
        if (Option.isNone(task)) {
          return yield* problem(2005, `There is no task ${id} at ${pathOf(path)}`)
        }
        return { task: task.value, entry }
      })

      return Router.of({
        create: (request) =>
          Effect.flatMap(resolve(request.path), (entry) => creation.create(entry, request)),
        quote: Effect.fn("Router.quote")(function* (path, body) {
          const entry = yield* resolve(path)
          const { body: decoded } = yield* decodeRequest(entry, body)
          return quote(entry, decoded)
        }),
        find,
        cancel: Effect.fn("Router.cancel")(function* (userId, path, id) {
          const { task } = yield* find(userId, path, id)
          const cancelled = yield* ending.fail(task, Option.none(), {
            code: 4004,
            title: "Cancelled",
            detail: "The task was cancelled by its owner"
          })
          if (!cancelled) return yield* problem(2010, `Task ${id} has already ended`)
          return yield* find(userId, path, id)
        })
      })
    })
  )
}

const pathOf = ({ action, model, vendor }: ModelPath): string =>
  `/vendors/${vendor}/v1/${model}/${action}`
