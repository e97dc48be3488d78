import { Option, Result } from "effect"
import { createHash } from "node:crypto"
import { zero } from "../domain/Credits.ts"
import { aliasKey, nameOf, vendorOf } from "./Alias.ts"
import type { Alias } from "./Alias.ts"
import type { CatalogEntry } from "./CatalogEntry.ts"
import { unversionedName } from "./OpenRoutes.ts"
import type { OpenRoute, TokenModel } from "./OpenRoutes.ts"
import { quote } from "./Price.ts"

/** A model of an alias, with its weight if the alias has weights. */
export interface Target<Model> {
  readonly model: Model
  readonly weight: number | undefined
}

interface Resolved<Model> {
  readonly alias: string
  readonly vendor: string
  /** In listed order. Never empty. */
  readonly targets: ReadonlyArray<Target<Model>>
}

/** An alias of media models: all have the same label, action and kind of result. */
export interface TaskAlias extends Resolved<CatalogEntry> {
  readonly first: CatalogEntry
}

/** An alias of models charged by the token. */
export type CallAlias = Resolved<TokenModel>

/** The rows that aliases refer to. */
export interface AliasedRows {
  readonly models: ReadonlyArray<CatalogEntry>
  readonly tokenModels: ReadonlyArray<TokenModel>
}

const targetsOf = <Model extends { readonly vendor: string; readonly model: string }>(
  { to }: Alias,
  rows: ReadonlyArray<Model>
): ReadonlyArray<Target<Model>> =>
  to.flatMap(({ model, weight }) => {
    const found = rows.find((row) => nameOf(row) === model)
    return found === undefined ? [] : [{ model: found, weight }]
  })

const isWhole = (alias: Alias, targets: ReadonlyArray<unknown>): boolean =>
  targets.length === alias.to.length

/** Resolves aliases that have been validated. */
export const resolveAliases = (
  aliases: ReadonlyArray<Alias>,
  { models, tokenModels }: AliasedRows
): { readonly tasks: ReadonlyArray<TaskAlias>; readonly calls: ReadonlyArray<CallAlias> } => {
  const named = aliases.map((alias) => ({
    alias: alias.alias,
    vendor: vendorOf(aliasKey(alias)),
    media: targetsOf(alias, models),
    tokens: targetsOf(alias, tokenModels),
    of: alias
  }))
  return {
    tasks: named.flatMap(({ alias, media, of, vendor }) => {
      const first = media[0]?.model
      return first !== undefined && isWhole(of, media)
        ? [{ alias, vendor, first, targets: media }]
        : []
    }),
    calls: named.flatMap(({ alias, media, of, tokens, vendor }) =>
      !isWhole(of, media) && isWhole(of, tokens) ? [{ alias, vendor, targets: tokens }] : []
    )
  }
}

/** What routes of one kind have in common: their protocol, or how they are metered. */
const kindOf = ({ meter }: OpenRoute): string =>
  meter.per === "tokens" ? meter.protocol : meter.per

/** The route for a model of another vendor: that vendor's own of the same kind and path. */
export const routeOf = (
  routes: ReadonlyArray<OpenRoute>,
  like: OpenRoute,
  { vendor }: Pick<TokenModel, "vendor">
): Option.Option<OpenRoute> => {
  if (vendor === like.vendor) return Option.some(like)
  return Option.fromUndefinedOr(
    routes.find(
      (it) =>
        it.vendor === vendor &&
        it.method === like.method &&
        kindOf(it) === kindOf(like) &&
        unversionedName(it) === unversionedName(like)
    )
  )
}

/** A number between 0 and 1, exclusive, derived from the text. The same text always gives the same number. */
const fractionOf = (text: string): number =>
  (createHash("sha256").update(text).digest().readUIntBE(0, 6) + 1) / (2 ** 48 + 1)

/**
 * The order in which the models of an alias are tried: as listed, or, with weights, drawn without
 * replacement by the id of the task or call, so that an id has the same order in every process.
 */
export const inOrderOf = <Model extends { readonly vendor: string; readonly model: string }>(
  targets: ReadonlyArray<Target<Model>>,
  id: string
): ReadonlyArray<Model> =>
  targets
    .map(({ model, weight }, index) => ({
      model,
      place: weight === undefined ? index : -Math.log(fractionOf(`${id} ${nameOf(model)}`)) / weight
    }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ model }) => model)

/**
 * An alias in the form of a model, under its own name and with the price of its most expensive model. Prices in
 * different units are compared by the price of one shortest result; the hold depends on the body.
 */
export const shownEntry = ({ alias, targets, vendor, first }: TaskAlias): CatalogEntry => {
  const ofOne = (model: CatalogEntry) => Result.getOrElse(quote(model, {}), () => zero)
  const mostExpensive = targets.reduce(
    (most, { model }) => (ofOne(model) > ofOne(most) ? model : most),
    first
  )
  const { action, adapter, artifacts, described, label, price, result, upstreamModel } =
    mostExpensive
  const shown = { vendor, model: alias, label, action, result, adapter, upstreamModel, price }
  return { ...shown, artifacts, ...(described && { described }) }
}

export const shownTokenModel = ({ alias, targets, vendor }: CallAlias): TokenModel | undefined => {
  const models = targets.map(({ model }) => model)
  const [mostExpensive] = models.toSorted((a, b) => (mainRate(b) > mainRate(a) ? 1 : -1))
  return (
    mostExpensive && {
      vendor,
      model: alias,
      ...(mostExpensive.kind === undefined ? {} : { kind: mostExpensive.kind }),
      price: mostExpensive.price,
      inputTokensMax: Math.min(...models.map((it) => it.inputTokensMax)),
      outputTokensMax: Math.min(...models.map((it) => it.outputTokensMax))
    }
  )
}

/** The rate by which the models of an alias, which are all of one kind, are compared. */
const mainRate = ({ price }: TokenModel): bigint =>
  price.per === "million_tokens" ? (price.output > 0n ? price.output : price.input) : price.amount

/** The names of an alias's models. */
export const namesIn = <Model extends { readonly vendor: string; readonly model: string }>(
  targets: ReadonlyArray<Target<Model>>
) => targets.map(({ model, weight }) => ({ ...pick(model), weight: weight ?? null }))

const pick = ({ model, vendor }: { readonly vendor: string; readonly model: string }) => ({
  vendor,
  model
})
