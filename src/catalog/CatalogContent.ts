import { Option, Predicate, Result, Schema } from "effect"
import { createHash } from "node:crypto"
import type { TaskAction } from "../domain/task/Task.ts"
import { Alias } from "./Alias.ts"
import { resolveAliases } from "./AliasTargets.ts"
import type { TaskAlias } from "./AliasTargets.ts"
import { CatalogEntry } from "./CatalogEntry.ts"
import type { BatchAdapterName, TaskModel } from "./CatalogEntry.ts"
import type { JobProtocol } from "./jobs/JobProtocol.ts"
import { OpenRoute, TokenModel } from "./OpenRoutes.ts"
import { taskRouteOf } from "./OtherRoute.ts"
import { makeUpstreamCatalog } from "./UpstreamCatalog.ts"
import type { UpstreamCatalog } from "./UpstreamCatalog.ts"
import { CatalogProvider } from "./Vendors.ts"

/**
 * The complete catalog: built-in models and prices with the changes of a file. Its text means the same to every
 * process, whatever the process's own file and release are.
 */
export const CatalogContent = Schema.Struct({
  models: Schema.Array(CatalogEntry),
  tokenModels: Schema.Array(TokenModel),
  routes: Schema.Array(OpenRoute),
  /** In addition to the built-in ones. */
  providers: Schema.Array(CatalogProvider),
  /** Absent if there are none. */
  aliases: Schema.optionalKey(Schema.Array(Alias))
})
export type CatalogContent = typeof CatalogContent.Type

/** A catalog's content and text, and the hash that identifies both: SHA-256 in hex. */
export interface HashedContent {
  readonly content: CatalogContent
  readonly text: string
  readonly hash: string
}

const encode = Schema.encodeSync(CatalogContent)
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(CatalogContent), {
  onExcessProperty: "error"
})

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Sorts members by name, so that equal contents have the same text. */
const inOrder = (_name: string, value: unknown): unknown =>
  Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value

export const hashed = (content: CatalogContent): HashedContent => {
  const text = JSON.stringify(encode(content), inOrder)
  return { content, text, hash: hashOf(text) }
}

/** Reads a stored text. Fails if it does not match the hash, or contains something that this release does not know. */
export const readStored = (hash: string, text: string): Result.Result<HashedContent, string> => {
  if (hashOf(text) !== hash) return Result.fail("its text does not match its hash")
  return Option.match(decode(text), {
    onNone: () => Result.fail("it has models or prices that this release does not know"),
    onSome: (content) => Result.succeed({ content, text, hash })
  })
}

/** A current or former catalog. Immutable: a reload creates a new one. */
export interface CatalogVersion extends HashedContent {
  /** Its number in the store, to which tasks, holds and receipts refer; `null` if it is not stored yet. */
  readonly id: number | null
  readonly all: ReadonlyArray<CatalogEntry>
  /** The model behind `/vendors/{vendor}/v1/{model}/{action}`. */
  readonly find: (vendor: string, model: string, action: TaskAction) => Option.Option<CatalogEntry>
  /** The model that runs tasks of this path: a media model or, for `responses`, an OpenAI language model. */
  readonly taskModel: (
    vendor: string,
    model: string,
    action: TaskAction
  ) => Option.Option<TaskModel>
  /** The aliases of media models. */
  readonly aliases: ReadonlyArray<TaskAlias>
  /** The alias at a path that has no model. */
  readonly findAlias: (
    vendor: string,
    model: string,
    action: TaskAction
  ) => Option.Option<TaskAlias>
  /** How jobs of a described vendor are submitted and polled. */
  readonly jobsOf: (provider: string) => JobProtocol | undefined
  /** The routes open to passthrough calls, and their prices. */
  readonly upstream: UpstreamCatalog
}

/** The parts of a model's path. */
interface PathParts {
  readonly vendor: string
  readonly model: string
  readonly action: TaskAction
}

export const pathKey = ({ action, model, vendor }: PathParts): string =>
  `${vendor}/v1/${model}/${action}`

/** The path at which tasks of the model are created. */
export const modelPath = (parts: PathParts): `/${string}` => `/vendors/${pathKey(parts)}`

/** Sentences that say where each model and alias of tasks is served, by name. */
const taskModelsOf = (
  models: ReadonlyArray<CatalogEntry>,
  aliases: ReadonlyArray<TaskAlias>
): ReadonlyMap<string, string> =>
  new Map(
    [
      ...aliases.map(({ alias, first, vendor }) => ({ entry: first, model: alias, vendor })),
      ...models.map((entry) => ({ entry, model: entry.model, vendor: entry.vendor }))
    ].map(({ entry, model, vendor }) => {
      const path = modelPath({ vendor, model, action: entry.action })
      return [model, taskRouteOf(entry, model, path)] as const
    })
  )

export const makeVersion = (source: HashedContent, id: number | null): CatalogVersion => {
  const { aliases = [], models, providers, routes, tokenModels } = source.content
  const { calls, tasks } = resolveAliases(aliases, { models, tokenModels })
  const byPath = new Map(models.map((entry) => [pathKey(entry), entry]))
  const upstream = makeUpstreamCatalog(
    { providers, routes, tokenModels, aliases: calls, taskModels: taskModelsOf(models, tasks) },
    id
  )
  const protocols = new Map(providers.map(({ jobs, name }) => [name, jobs]))
  const find = (vendor: string, model: string, action: TaskAction) =>
    Option.fromUndefinedOr(byPath.get(pathKey({ vendor, model, action })))
  return {
    ...source,
    id,
    all: models,
    upstream,
    aliases: tasks,
    findAlias: (vendor, model, action) =>
      Option.fromUndefinedOr(
        tasks.find((it) => it.alias === model && it.vendor === vendor && it.first.action === action)
      ),
    find,
    jobsOf: (provider) => protocols.get(provider),
    taskModel: (vendor, model, action) => {
      if (action === "batches") return batchModel(upstream, vendor, model)
      return action === "responses"
        ? responseModel(upstream, vendor, model)
        : find(vendor, model, action)
    }
  }
}

/**
 * The task model for background responses. Dated versions of a model share its price, and its rate limit at the vendor.
 */
const responseModel = (
  upstream: UpstreamCatalog,
  vendor: string,
  name: string
): Option.Option<TaskModel> =>
  Option.map(Option.fromUndefinedOr(upstream.priced(vendor, name)), ({ model }) => ({
    vendor,
    model: name,
    label: "response",
    result: "responses",
    adapter: "openai-responses",
    upstreamModel: model
  }))

/** The adapters that run a vendor's batches. */
const batchAdapters: { readonly [vendor: string]: BatchAdapterName } = {
  openai: "openai-batches",
  anthropic: "anthropic-batches"
}

/** `undefined` if the vendor has no batches, or no adapter supports them. */
export const batchAdapterOf = (vendor: string): BatchAdapterName | undefined =>
  Object.hasOwn(batchAdapters, vendor) ? batchAdapters[vendor] : undefined

/** The task model that runs a batch of requests to this model. */
export const batchModel = (
  upstream: UpstreamCatalog,
  vendor: string,
  name: string
): Option.Option<TaskModel> => {
  const model = upstream.priced(vendor, name)
  const adapter = batchAdapterOf(vendor)
  if (model === undefined || adapter === undefined) return Option.none()
  return Option.some({
    vendor,
    model: name,
    label: "batch",
    result: "batches",
    adapter,
    upstreamModel: model.model
  })
}
