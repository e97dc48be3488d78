import type { FieldFault } from "../domain/Problem.ts"
import { aliasKey, nameOf } from "./Alias.ts"
import type { Alias } from "./Alias.ts"
import type { AliasedRows } from "./AliasTargets.ts"
import type { CatalogEntry } from "./CatalogEntry.ts"
import { pointerOf } from "./FieldFaults.ts"
import { serves } from "./OpenRoutes.ts"
import type { OpenRoute, TokenModel } from "./OpenRoutes.ts"
import type { UpstreamCatalog } from "./UpstreamCatalog.ts"

type Fault = readonly [path: ReadonlyArray<PropertyKey>, detail: string]

interface Known extends AliasedRows {
  readonly routes: ReadonlyArray<OpenRoute>
  readonly priced: UpstreamCatalog["priced"]
  readonly aliases: ReadonlySet<string>
}

/** Every fault of the aliases of a catalog file, at its place. docs/catalog.md#aliases */
export const aliasFaults = (
  aliases: ReadonlyArray<Alias>,
  rows: AliasedRows & Pick<UpstreamCatalog, "routes" | "priced">
): ReadonlyArray<FieldFault> => {
  const names = aliases.map(aliasKey)
  const known: Known = {
    models: rows.models,
    tokenModels: rows.tokenModels,
    routes: rows.routes,
    priced: rows.priced,
    aliases: new Set(names)
  }
  return aliases.flatMap((alias, index) => {
    const name = names[index] ?? ""
    const faults: ReadonlyArray<Fault> = [
      ...nameFaults(name, names.indexOf(name) === index, known),
      ...targetFaults(alias, known),
      ...weightFaults(alias),
      ...kindFaults(alias, known)
    ]
    return faults.map(([path, detail]) => ({
      pointer: pointerOf(["aliases", index, ...path]),
      detail
    }))
  })
}

const nameFaults = (name: string, isFirst: boolean, known: Known): ReadonlyArray<Fault> => {
  const [vendor = "", model = ""] = name.split("/")
  const isModel =
    known.models.some((row) => nameOf(row) === name) || known.priced(vendor, model) !== undefined
  return [
    ...(isModel ? [[["alias"], `A model ${name} already exists`] as const] : []),
    ...(isFirst ? [] : [[["alias"], `An alias ${name} already exists`] as const])
  ]
}

const rowsNamed = <Row extends { readonly vendor: string; readonly model: string }>(
  rows: ReadonlyArray<Row>,
  name: string
): ReadonlyArray<Row> => rows.filter((row) => nameOf(row) === name)

const targetFaults = ({ to }: Alias, known: Known): ReadonlyArray<Fault> =>
  to.flatMap(({ model }, index): ReadonlyArray<Fault> => {
    const at = ["to", index, "model"]
    if (to.findIndex((it) => it.model === model) !== index)
      return [[at, `${model} is listed twice`]]
    const media = rowsNamed(known.models, model)
    if (media.length > 1) return [[at, `${model} has two paths, so an alias cannot refer to it`]]
    if (media.length > 0 || rowsNamed(known.tokenModels, model).length > 0) return []
    return known.aliases.has(model)
      ? [[at, `${model} is an alias: an alias can only refer to models`]]
      : [[at, `There is no model ${model}`]]
  })

const weightFaults = ({ to }: Alias): ReadonlyArray<Fault> => {
  const without = to.findIndex(({ weight }) => weight === undefined)
  return without < 0 || to.every(({ weight }) => weight === undefined)
    ? []
    : [[["to", without, "weight"], "Expected a weight: other models of this alias have one"]]
}

/** Checks only targets that are known models. */
const kindFaults = ({ to }: Alias, known: Known): ReadonlyArray<Fault> => {
  const found = to.map(({ model }) => ({
    media: rowsNamed(known.models, model)[0],
    token: rowsNamed(known.tokenModels, model)[0]
  }))
  if (found.some(({ media, token }) => media === undefined && token === undefined)) return []
  const media = found.map(({ media }) => media)
  if (media.every((it) => it !== undefined)) return bodyFaults(media)
  const tokens = found.map(({ token }) => token)
  if (tokens.every((it) => it !== undefined)) return dialectFaults(tokens, known.routes)
  const isMedia = found[0]?.media !== undefined
  const other = found.findIndex(({ media }) => (media !== undefined) !== isMedia)
  return [
    [
      ["to", other, "model"],
      "Expected either models that create media or models charged by the token"
    ]
  ]
}

const bodyOf = ({ action, label, result }: CatalogEntry): string =>
  `${label} at /${action} with ${result}`

const bodyFaults = (entries: ReadonlyArray<CatalogEntry>): ReadonlyArray<Fault> => {
  const [first] = entries
  return entries.flatMap((entry, index): ReadonlyArray<Fault> =>
    first === undefined || bodyOf(entry) === bodyOf(first)
      ? []
      : [
          [
            ["to", index, "model"],
            `Its body is that of ${bodyOf(entry)}, but the first model's is that of ${bodyOf(first)}`
          ]
        ]
  )
}

/** The protocols of the vendor's routes that a model supports. */
const dialectsOf = (model: TokenModel, routes: ReadonlyArray<OpenRoute>): ReadonlySet<string> =>
  new Set(
    routes.flatMap((route) =>
      route.meter.per === "tokens" && serves(route, model) ? [route.meter.protocol] : []
    )
  )

const dialectFaults = (
  models: ReadonlyArray<TokenModel>,
  routes: ReadonlyArray<OpenRoute>
): ReadonlyArray<Fault> => {
  const [first] = models
  if (first === undefined) return []
  let common = dialectsOf(first, routes)
  const faults: Array<Fault> = []
  for (const [index, model] of models.entries()) {
    const own = dialectsOf(model, routes)
    const left = new Set([...common].filter((it) => own.has(it)))
    if (left.size === 0) {
      const detail = `It has no route of the dialect of the preceding models (${[...common].join(", ")})`
      faults.push([["to", index, "model"], detail])
    } else common = left
  }
  return faults
}
