import { builtInProviders, pathBeforeVersion } from "../domain/Provider.ts"
import type { Dialect, Provider, ProviderEntry } from "../domain/Provider.ts"
import type { CallAlias } from "./AliasTargets.ts"
import { builtInRoutes } from "./OpenRoutes.ts"
import type { OpenRoute, TokenModel } from "./OpenRoutes.ts"
import { dialectOf } from "./OtherRoute.ts"
import { shippedJobVendors, shippedVendors } from "./ShippedVendors.ts"
import { builtInTokenModels } from "./TokenModels.ts"
import { unsoldModels } from "./UnsoldModels.ts"
import { providerOf, routesOf, tokenModelsOf } from "./Vendors.ts"
import type { CatalogProvider, Vendor } from "./Vendors.ts"

/**
 * The result of matching a path: an open route with its model segment, a path that is open only for other methods, or
 * nothing.
 */
export type RouteMatch =
  | {
      readonly _tag: "Open"
      /** The catalog that prices the call, even if another catalog is adopted before its body arrives. */
      readonly catalog: UpstreamCatalog
      readonly route: OpenRoute
      /** The upstream path, built from the route and not from the client's text. */
      readonly path: string
      readonly model: string | undefined
    }
  | { readonly _tag: "OtherMethod"; readonly allow: ReadonlyArray<string> }
  | { readonly _tag: "Closed" }

/** The open upstream routes and the models with a token price. ADR 0073. */
export interface UpstreamCatalog {
  /** The number of the catalog in the store; `null` if it is not stored. */
  readonly id: number | null
  readonly routes: ReadonlyArray<OpenRoute>
  readonly tokenModels: ReadonlyArray<TokenModel>
  /** `undefined` for an unknown name. */
  readonly provider: (name: Provider) => ProviderEntry | undefined
  /** `path` is the raw path after `/vendors/{vendor}`, without the query; it may begin like the path of the base. */
  readonly match: (vendor: string, method: string, path: string) => RouteMatch
  readonly priced: (vendor: string, model: string) => TokenModel | undefined
  readonly aliases: ReadonlyArray<CallAlias>
  /** The alias of a name for which there is no priced model. */
  readonly aliasOf: (vendor: string, name: string) => CallAlias | undefined
  /** A sentence that says which route serves a model that the vendor does not have; `undefined` if none does. */
  readonly elsewhere: (vendor: string, name: string) => string | undefined
  /** Why a model of a vendor has no price; `undefined` if it has one or is unknown. */
  readonly unsold: (vendor: string, model: string) => string | undefined
}

/** The routes and prices of an upstream catalog. */
export interface UpstreamRows {
  /** In addition to the built-in ones. */
  readonly providers: ReadonlyArray<CatalogProvider>
  readonly routes: ReadonlyArray<OpenRoute>
  readonly tokenModels: ReadonlyArray<TokenModel>
}

/** The format of a provider's calls. */
export const dialectOfProvider = (catalog: UpstreamCatalog, provider: Provider): Dialect =>
  catalog.provider(provider)?.dialect ?? "openai"

/** Removes rows that a later row with the same key replaces. */
const replaced = <Row>(rows: ReadonlyArray<Row>, keyOf: (row: Row) => string): Array<Row> => [
  ...new Map(rows.map((row) => [keyOf(row), row])).values()
]

export const routeKey = ({ method, path, vendor }: OpenRoute): string =>
  `${method} ${vendor}${path}`

export const tokenModelKey = ({ model, vendor }: TokenModel): string => `${vendor}/${model}`

const isShipped = (vendor: Vendor): boolean =>
  shippedVendors.includes(vendor) || shippedJobVendors.get(vendor.name) === vendor

/** The shipped vendors, unless a file replaces them, and the vendors of the file. */
export const openedBy = (vendors: ReadonlyArray<Vendor> = []): ReadonlyArray<Vendor> => [
  ...shippedVendors.filter(({ name }) => vendors.every((it) => it.name !== name)),
  ...vendors
]

/** Adds the vendors, routes and prices of a catalog file to the built-in ones, or replaces them. */
export const withBuiltIn = ({
  routes = [],
  tokenModels = [],
  vendors = []
}: {
  readonly routes?: ReadonlyArray<OpenRoute> | undefined
  readonly tokenModels?: ReadonlyArray<TokenModel> | undefined
  readonly vendors?: ReadonlyArray<Vendor> | undefined
} = {}): UpstreamRows => {
  const opened = openedBy(vendors)
  return {
    providers: opened.map((vendor) => ({
      ...providerOf(vendor),
      ...(isShipped(vendor) ? {} : { guarded: true })
    })),
    routes: replaced([...builtInRoutes, ...opened.flatMap(routesOf), ...routes], routeKey),
    tokenModels: replaced(
      [...builtInTokenModels, ...opened.flatMap(tokenModelsOf), ...tokenModels.map(likeBuiltIn)],
      tokenModelKey
    )
  }
}

/** A row that changes the price of a built-in model keeps its `kind` and `reasons`, unless the row sets them. */
export const likeBuiltIn = (row: TokenModel): TokenModel => {
  const key = tokenModelKey(row)
  const { kind, reasons } = builtInTokenModels.find((model) => tokenModelKey(model) === key) ?? {}
  return {
    ...(reasons === undefined ? {} : { reasons }),
    ...(kind === undefined ? {} : { kind }),
    ...row
  }
}

/** A decoded segment, or a model within one. Allows no slash, percent sign or space, and not `.` or `..`. */
const segmentPattern = /^(?!\.{1,2}$)[A-Za-z0-9._:@-]{1,128}$/u

/** The decoded segments of a path; `undefined` if one of them may not be sent upstream. */
const segmentsOf = (path: string): ReadonlyArray<string> | undefined => {
  if (!path.startsWith("/")) return undefined
  const segments: Array<string> = []
  for (const raw of path.slice(1).split("/")) {
    const segment = raw.includes("%") ? decoded(raw) : raw
    if (segment === undefined || !segmentPattern.test(segment)) return undefined
    segments.push(segment)
  }
  return segments
}

const decoded = (raw: string): string | undefined => {
  try {
    return decodeURIComponent(raw)
  } catch {
    return undefined
  }
}

interface MatchedPath {
  readonly path: string
  readonly model: string | undefined
}

const matchRoute = (
  pattern: ReadonlyArray<string>,
  segments: ReadonlyArray<string>
): MatchedPath | undefined => {
  if (pattern.length !== segments.length) return undefined
  let path = ""
  let model: string | undefined
  for (const [index, expected] of pattern.entries()) {
    const given = segments[index] ?? ""
    if (expected.startsWith("{model}")) {
      const suffix = expected.slice("{model}".length)
      if (!given.endsWith(suffix)) return undefined
      model = given.slice(0, given.length - suffix.length)
      // A verb such as :generateContent belongs to the route, never to the model
      if (!segmentPattern.test(model) || (suffix === "" && /:[a-z]+[A-Z]/u.test(model)))
        return undefined
      path += `/${encodeURIComponent(model).replaceAll("%3A", ":").replaceAll("%40", "@")}${suffix}`
    } else if (expected === given) {
      path += `/${expected}`
    } else {
      return undefined
    }
  }
  return { path, model }
}

/** The most paths that one catalog caches. */
const rememberedMax = 1000

/**
 * Caches the matches of open paths, because every call needs one and most calls use the same paths. The key is the path
 * itself, so no new string is created.
 */
const rememberOpen = (match: UpstreamCatalog["match"]): UpstreamCatalog["match"] => {
  const known = new Map<string, Extract<RouteMatch, { readonly _tag: "Open" }>>()
  return (vendor, method, path) => {
    const before = known.get(path)
    if (before?.route.vendor === vendor && before.route.method === method) return before
    const found = match(vendor, method, path)
    if (found._tag !== "Open") return found
    if (known.size >= rememberedMax) known.clear()
    known.set(path, found)
    return found
  }
}

/** A date, a three-digit number or `-latest` after a model id names a version of the same model. */
const versionSuffix = /(?:-\d{4}-\d{2}-\d{2}|-\d{8}|-latest|-\d{3})$/u

/** Whether the name always denotes the same version of a model. */
export const isPinned = (name: string): boolean =>
  versionSuffix.test(name) && !name.endsWith("-latest")

const unsoldBecause = (vendor: string, model: string): string | undefined =>
  unsoldModels.get(`${vendor}/${model}`)

export const makeUpstreamCatalog = (
  {
    aliases = [],
    providers,
    routes,
    taskModels = new Map(),
    tokenModels
  }: UpstreamRows & {
    readonly aliases?: ReadonlyArray<CallAlias>
    /** Task models and aliases by name, each with the sentence that says where it is served. */
    readonly taskModels?: ReadonlyMap<string, string>
  } = withBuiltIn(),
  id: number | null = null
): UpstreamCatalog => {
  const byVendor = Map.groupBy(
    routes.map((route) => ({ route, pattern: route.path.slice(1).split("/") })),
    ({ route }) => route.vendor
  )
  // Read on every call: two lookups cost less than building a combined key
  const modelsOf = new Map(
    Map.groupBy(tokenModels, ({ vendor }) => vendor)
      .entries()
      .map(([vendor, own]) => [vendor, new Map(own.map((model) => [model.model, model]))])
  )
  const providersByName = new Map<Provider, ProviderEntry>(
    [...builtInProviders, ...providers].map((it) => [it.name, it])
  )
  // Some vendors' own clients send it with every path. A vendor of a catalog has the name of its provider
  const prefixes = new Map(
    providers.flatMap(({ base, name }) => {
      const prefix = base === undefined ? "" : pathBeforeVersion(base)
      return prefix === "" ? [] : [[name, prefix] as const]
    })
  )
  const priced = (vendor: string, model: string): TokenModel | undefined => {
    const own = modelsOf.get(vendor)
    const listed = own?.get(model)
    if (listed !== undefined || own === undefined) return listed
    // A version that is deliberately not sold does not get the price of its model
    const base = model.replace(versionSuffix, "")
    return base === model || unsoldBecause(vendor, model) !== undefined ? undefined : own.get(base)
  }
  const aliasOf = (vendor: string, name: string): CallAlias | undefined =>
    aliases.find((it) => it.alias === name && it.vendor === vendor)
  const catalog: UpstreamCatalog = {
    id,
    routes,
    tokenModels,
    provider: (name) => providersByName.get(name),
    match: rememberOpen((vendor, method, given) => {
      const prefix = prefixes.get(vendor)
      const path =
        prefix !== undefined && given.startsWith(`${prefix}/`) ? given.slice(prefix.length) : given
      const segments = segmentsOf(path)
      if (segments === undefined) return { _tag: "Closed" }
      const allow: Array<string> = []
      // The response to a HEAD is that to a GET, without its body
      const wanted = method === "HEAD" ? "GET" : method
      for (const { pattern, route } of byVendor.get(vendor) ?? []) {
        const found = matchRoute(pattern, segments)
        if (found === undefined) continue
        if (route.method === wanted) return { _tag: "Open", catalog, route, ...found }
        allow.push(...(route.method === "GET" ? ["GET", "HEAD"] : [route.method]))
      }
      return allow.length === 0 ? { _tag: "Closed" } : { _tag: "OtherMethod", allow }
    }),
    priced,
    aliases,
    aliasOf,
    elsewhere: (vendor, name) => {
      for (const other of modelsOf.keys()) {
        if (other === vendor) continue
        const model = priced(other, name) ?? aliasOf(other, name)?.targets[0]?.model
        const sentence = model && dialectOf(routes, model, name)
        if (sentence !== undefined) return sentence
      }
      return taskModels.get(name)
    },
    unsold: (vendor, model) =>
      priced(vendor, model) === undefined
        ? (unsoldBecause(vendor, model) ?? unsoldBecause(vendor, model.replace(versionSuffix, "")))
        : undefined
  }
  return catalog
}
