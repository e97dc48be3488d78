import { Array as Arr, Effect, FileSystem, Option, Result, Schema } from "effect"
import { FieldFault } from "../domain/Problem.ts"
import { builtInProviders } from "../domain/Provider.ts"
import type { Dialect } from "../domain/Provider.ts"
import { aliasFaults } from "./AliasFaults.ts"
import { builtInEntries } from "./BuiltInModels.ts"
import { hashed, pathKey } from "./CatalogContent.ts"
import type { CatalogContent, HashedContent } from "./CatalogContent.ts"
import { CatalogFile } from "./CatalogEntry.ts"
import type { CatalogEntry } from "./CatalogEntry.ts"
import { bodyParseOptions, capFaults, faultsOf, pointerOf } from "./FieldFaults.ts"
import { jobFaults, mediaFaults } from "./jobs/JobFaults.ts"
import { mediaModelOf } from "./jobs/MediaModel.ts"
import { linesOf } from "./JsonLines.ts"
import { unitsFor } from "./ModelPrice.ts"
import { builtInRoutes, dialectRoute, dialectRoutes } from "./OpenRoutes.ts"
import type { TokenModel } from "./OpenRoutes.ts"
import { orderFaults } from "./PriceRow.ts"
import type { PriceRow } from "./PriceRow.ts"
import { shippedJobVendors } from "./ShippedVendors.ts"
import {
  likeBuiltIn,
  makeUpstreamCatalog,
  openedBy,
  tokenModelKey,
  withBuiltIn
} from "./UpstreamCatalog.ts"
import { jobModelsOf, tokenModelsOf, Vendor } from "./Vendors.ts"

/**
 * `CATALOG_FILE` cannot be used. Lists the places in the file and their faults. It stops a startup; a failed reload
 * changes nothing.
 */
export class CatalogError extends Schema.TaggedError<CatalogError>()("CatalogError", {
  file: Schema.String,
  errors: Schema.NonEmptyArray(FieldFault)
}) {
  override get message(): string {
    const faults = this.errors.map(({ detail, pointer }) => `${pointer}: ${detail}`).join("; ")
    return `CATALOG_FILE ${this.file}: ${faults}. Correct the file, or unset CATALOG_FILE to use the built-in catalog`
  }
}

const changed = (entry: CatalogEntry, change: Partial<CatalogEntry>): CatalogEntry => ({
  ...entry,
  ...change
})

/** The vendors of a file, with the shipped vendors that it names. */
const vendorsIn = ({ vendors = [] }: CatalogFile): ReadonlyArray<Vendor> =>
  vendors.flatMap((vendor) => {
    const found = typeof vendor === "string" ? shippedJobVendors.get(vendor) : vendor
    return found === undefined ? [] : [found]
  })

/** The built-in catalog with the changes of a file. */
const contentOf = (file: CatalogFile): CatalogContent => {
  const vendors = vendorsIn(file)
  const removed = new Set(file.remove ?? [])
  const kept = builtInEntries
    .filter((entry) => !removed.has(entry.label))
    .map((entry) => changed(entry, file.change?.[entry.label] ?? {}))
  const added = (file.add ?? []).flatMap((addition) =>
    builtInEntries
      .filter((entry) => entry.label === addition.label)
      .map((entry) => changed(entry, addition))
  )
  const { aliases = [] } = file
  return {
    models: [
      ...kept,
      ...added,
      ...openedBy(vendors).flatMap(jobModelsOf),
      ...(file.mediaModels ?? []).map(mediaModelOf)
    ],
    ...withBuiltIn({ ...file, vendors }),
    ...(aliases.length === 0 ? {} : { aliases })
  }
}

export const builtIn: HashedContent = hashed(contentOf({}))

const firstTwice = (keys: ReadonlyArray<string>): string | undefined =>
  keys.find((key, index) => keys.indexOf(key) !== index)

/** Rules that the schema of the file cannot express. */
const faultsIn = (file: CatalogFile, content: CatalogContent): ReadonlyArray<FieldFault> => {
  const { models } = content
  const vendors = vendorsIn(file)
  const rows: ReadonlyArray<readonly [string, Omit<PriceRow<unknown>, "price">]> = [
    ...Object.entries(file.change ?? {}).map(([label, row]) => [`change/${label}`, row] as const),
    ...(file.add ?? []).map((row, index) => [`add/${index}`, row] as const),
    ...(file.tokenModels ?? []).map((row, index) => [`tokenModels/${index}`, row] as const),
    ...(file.mediaModels ?? []).map((row, index) => [`mediaModels/${index}`, row] as const),
    ...vendors.flatMap(({ models = [] }, at) =>
      models.map((row, index) => [`vendors/${at}/models/${index}`, row] as const)
    ),
    ...vendors.flatMap(({ jobs }, at) =>
      (jobs?.models ?? []).map((row, index) => [`vendors/${at}/jobs/models/${index}`, row] as const)
    )
  ]
  const { providers, routes, tokenModels } = content
  const upstream = makeUpstreamCatalog({ providers, routes, tokenModels })
  const path = firstTwice(models.map(pathKey))
  const model = firstTwice((file.tokenModels ?? []).map(tokenModelKey))
  return [
    ...rows.flatMap(([at, row]) =>
      orderFaults(row).map(({ detail, field }) => ({
        pointer: pointerOf([...at.split("/"), field]),
        detail
      }))
    ),
    ...(path === undefined
      ? []
      : [{ pointer: "#", detail: `Two models have the path /vendors/${path}` }]),
    ...(model === undefined
      ? []
      : [{ pointer: "#/tokenModels", detail: `Two rows have the model ${model}` }]),
    ...(file.mediaModels ?? []).flatMap((model, index) =>
      mediaFaults(model).map(([at, detail]) => ({
        pointer: pointerOf(["mediaModels", index, ...at]),
        detail
      }))
    ),
    ...vendors.flatMap((vendor, index) => vendorFaults(vendor, ["vendors", index], vendors)),
    ...(file.routes ?? []).flatMap(({ provider }, index) =>
      upstream.provider(provider) === undefined
        ? [{ pointer: pointerOf(["routes", index, "provider"]), detail: noProvider(provider) }]
        : []
    ),
    ...captureFaults(file),
    ...secondFaults(file),
    ...tokenRows(file).flatMap(([at, row]) => unitFaults(at, likeBuiltIn(row))),
    ...aliasFaults(file.aliases ?? [], { ...upstream, models })
  ]
}

type Place = ReadonlyArray<PropertyKey>

/** The rows of called models, with their places in the file. */
const tokenRows = ({
  tokenModels = [],
  vendors = []
}: CatalogFile): ReadonlyArray<readonly [Place, TokenModel]> => [
  ...tokenModels.map((row, index) => [["tokenModels", index], row] as const),
  // A string stands for a shipped vendor, whose rows are not part of the file
  ...vendors.flatMap((vendor, at) =>
    typeof vendor === "string"
      ? []
      : tokenModelsOf(vendor).map((row, index) => [["vendors", at, "models", index], row] as const)
  )
]

/** Faults of prices whose unit does not fit the model's kind. */
const unitFaults = (
  at: Place,
  { kind, laterPrices = [], price }: TokenModel
): ReadonlyArray<FieldFault> => {
  const units = unitsFor(kind)
  const prices: ReadonlyArray<readonly [Place, string]> = [
    [["price"], price.per],
    ...laterPrices.map(
      (later, index) => [["laterPrices", index, "price"], later.price.per] as const
    )
  ]
  return prices.flatMap(([place, per]) =>
    units.some((unit) => unit === per)
      ? []
      : [
          {
            pointer: pointerOf([...at, ...place, "per"]),
            detail: `Expected ${units.join(" or ")} for ${kind === undefined ? "a model without kind" : `the kind ${kind}`}`
          }
        ]
  )
}

/**
 * A model without a description reports only the number of its results when a task ends, so its price cannot have
 * `capture`.
 */
const captureFaults = ({ add = [], change = {} }: CatalogFile): ReadonlyArray<FieldFault> =>
  [
    ...Object.entries(change).map(([label, { price }]) => [["change", label], price] as const),
    ...add.map(({ price }, index) => [["add", index], price] as const)
  ].flatMap(([at, price]) =>
    price?.per === "expression" && price.capture !== undefined
      ? [
          {
            pointer: pointerOf([...at, "price", "capture"]),
            detail: "Only models of job vendors are charged by an expression"
          }
        ]
      : []
  )

/** The entries of a file that are built on a built-in model, with their places in the file. */
const entryRows = ({
  add = [],
  change = {}
}: CatalogFile): ReadonlyArray<readonly [Place, Partial<CatalogEntry>, CatalogEntry]> =>
  builtInEntries.flatMap((entry) => {
    const { label } = entry
    const row = change[label]
    return [
      ...(row === undefined ? [] : [[["change", label], row, entry] as const]),
      ...add.flatMap((it, index) =>
        it.label === label ? [[["add", index], it, entry] as const] : []
      )
    ]
  })

/** A price per second needs the duration that the body of a video model has, and a result that lasts as long. */
const secondFaults = (file: CatalogFile): ReadonlyArray<FieldFault> =>
  entryRows(file).flatMap(([at, row, entry]) => {
    const { result } = changed(entry, row)
    if (entry.result === "videos" && (result === "videos" || result === "audios")) return []
    const prices: ReadonlyArray<readonly [Place, string | undefined]> = [
      row.price === undefined ? [["result"], entry.price.per] : [["price", "per"], row.price.per],
      ...(row.laterPrices ?? []).map(
        (later, index) => [["laterPrices", index, "price", "per"], later.price.per] as const
      )
    ]
    return prices.flatMap(([place, per]) =>
      per === "second"
        ? [{ pointer: pointerOf([...at, ...place]), detail: "Only videos have a price per second" }]
        : []
    )
  })

const missing = "Required, but missing"

const noProvider = (name: string): string =>
  `There is no provider ${name}: an entry of vendors opens one`

/** Names with built-in accounts, paths or variables. `GATEWAY_API_KEY` belongs to the command. */
const takenNames: ReadonlySet<string> = new Set([
  "gateway",
  ...builtInProviders.map(({ name }) => name),
  ...builtInRoutes.map(({ vendor }) => vendor),
  ...builtInEntries.map(({ vendor }) => vendor)
])

const vendorFaults = (
  vendor: Vendor,
  path: ReadonlyArray<PropertyKey>,
  all: ReadonlyArray<Vendor>
): ReadonlyArray<FieldFault> => {
  const { auth, dialect, jobs, name, routes = [] } = vendor
  const fault = (at: ReadonlyArray<PropertyKey>, detail: string): FieldFault => ({
    pointer: pointerOf([...path, ...at]),
    detail
  })
  const model = firstTwice(tokenModelsOf(vendor).map(tokenModelKey))
  const isTaken = takenNames.has(name)
  const isSecond = all.find((other) => other.name === name) !== vendor
  return [
    ...(isTaken ? [fault(["name"], `The vendor ${name} is built in`)] : []),
    ...(isSecond ? [fault(["name"], `Two vendors have the name ${name}`)] : []),
    ...(jobs === undefined || routes.length > 0 || dialect !== undefined
      ? [
          ...(dialect === undefined ? [fault(["dialect"], missing)] : []),
          ...(routes.length === 0 ? [fault(["routes"], missing)] : []),
          ...(auth === undefined ? [fault(["auth"], missing)] : [])
        ]
      : []),
    ...(auth === undefined || jobs?.auth === undefined || routes.length > 0
      ? []
      : [fault(["auth"], "Only jobs.auth applies to a vendor without routes")]),
    ...routes.flatMap((route, index) =>
      dialect !== undefined && dialectRoute(dialect, route) === undefined
        ? [fault(["routes", index], `Expected a route of the dialect: ${dialectPaths(dialect)}`)]
        : []
    ),
    ...(jobs === undefined
      ? []
      : jobFaults(jobs).map(([at, detail]) => fault(["jobs", ...at], detail))),
    ...(model === undefined ? [] : [fault(["models"], `Two rows have the model ${model}`)])
  ]
}

const dialectPaths = (dialect: Dialect): string =>
  [...new Set(dialectRoutes(dialect).map(({ path }) => path))].join(", ")

// In two steps, so that faults of the decoded value do not begin with "Expected a string"
const decodeJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))
const decodeFile = Schema.decodeUnknownEffect(CatalogFile, bodyParseOptions)

const textOf = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  return yield* Effect.mapError(files.readFileString(path), ({ reason }) => {
    const detail = `Cannot be read (${reason._tag})`
    return new CatalogError({ file: path, errors: [{ pointer: "#", detail }] })
  })
})

/** The line where a text is no longer JSON, as the message of the parser says it, or else the last one. */
const syntaxLine = (text: string): number => {
  const parsed = Result.try((): unknown => JSON.parse(text))
  const [, line] = Result.isFailure(parsed)
    ? (/\(line (\d+) column \d+\)$/u.exec(String(parsed.failure)) ?? [])
    : []
  return line === undefined ? text.trimEnd().split("\n").length : Number(line)
}

/** The faults with their lines in the file. */
const located = (text: string, errors: Arr.NonEmptyReadonlyArray<FieldFault>) => {
  const lines = linesOf(
    text,
    errors.map(({ pointer }) => pointer)
  )
  return Arr.map(errors, ({ detail, pointer }, index) => ({
    pointer,
    detail: `${detail} (line ${lines[index] ?? 1})`
  }))
}

const decoded = Effect.fnUntraced(function* (path: string, text: string) {
  const fail = (errors: Arr.NonEmptyReadonlyArray<FieldFault>) =>
    new CatalogError({ file: path, errors: located(text, errors) })
  const value = yield* Effect.mapError(decodeJson(text), () => {
    const detail = `Expected valid JSON (line ${syntaxLine(text)})`
    return new CatalogError({ file: path, errors: [{ pointer: "#", detail }] })
  })
  const deep = tooDeep(value)
  if (deep !== undefined) {
    const detail = `Expected at most ${depthMax} levels`
    return yield* fail([{ pointer: pointerOf(deep), detail }])
  }
  return yield* Effect.mapError(decodeFile(value), (error) => fail(faultsOf(error.issue)))
})

/** Deeper values would overflow the stack of code that reads them. */
const depthMax = 64

/** The beginning of the path to the first value that is too deep. */
const tooDeep = (root: unknown): ReadonlyArray<string> | undefined => {
  let level: ReadonlyArray<readonly [unknown, ReadonlyArray<string>]> = [[root, []]]
  for (let depth = 0; depth <= depthMax && level.length > 0; depth += 1) {
    level = level.flatMap(([value, path]) =>
      typeof value === "object" && value !== null
        ? Object.entries(value).map(
            ([name, member]) =>
              [member, path.length < shownKeysMax ? [...path, name] : path] as const
          )
        : []
    )
  }
  return level[0]?.[1]
}

/** The most keys shown of a path that is too long. */
const shownKeysMax = 8

/** The entry of a vendor in a file, or of a shipped vendor that it opens, in the form that a file has. */
export const vendorOf = (path: string, name: string) =>
  textOf(path).pipe(
    Effect.flatMap((text) => decoded(path, text)),
    Effect.map((file) =>
      Option.map(
        Option.fromUndefinedOr(vendorsIn(file).find((it) => it.name === name)),
        Schema.encodeSync(Vendor)
      )
    )
  )

export const readFile = Effect.fn("CatalogSource.readFile")(function* (path: string) {
  const text = yield* textOf(path)
  const file = yield* decoded(path, text)
  const content = contentOf(file)
  const faults = faultsIn(file, content)
  if (!Arr.isReadonlyArrayNonEmpty(faults)) return hashed(content)
  return yield* new CatalogError({ file: path, errors: located(text, capFaults(faults)) })
})
