import { Effect, Option, Schema } from "effect"
import { nameOf } from "../catalog/Alias.ts"
import { shownTokenModel } from "../catalog/AliasTargets.ts"
import type { CallAlias } from "../catalog/AliasTargets.ts"
import type { ModelPrice } from "../catalog/ModelPrice.ts"
import type { OpenRoute, TokenModel } from "../catalog/OpenRoutes.ts"
import { endingOf, priceAt } from "../catalog/PriceRow.ts"
import { dialectOfProvider } from "../catalog/UpstreamCatalog.ts"
import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { formatExact } from "../domain/Credits.ts"
import type { Problem } from "../domain/Problem.ts"
import { problem } from "../domain/Problem.ts"
import type { Dialect } from "../domain/Provider.ts"
import { allowsModel, modelNotAllowed } from "../users/ApiKeys.ts"
import { notOffered } from "./NotOffered.ts"
import { unmetered } from "./PassthroughCall.ts"
import type { OpenPath, PassthroughCall, Relayed } from "./PassthroughCall.ts"

/** Whether the route is a vendor's list of models, or one model of it. */
export const isModelRoute = ({ method, path }: OpenRoute): boolean =>
  method === "GET" && /\/models(?:\/\{model\})?$/u.test(path)

const Member = Schema.Record(Schema.String, Schema.Json)
type Member = typeof Member.Type

const List = Schema.Array(Member)
const isList = Schema.is(List)
const decodeList = Schema.decodeUnknownOption(List)

/** A list or a single model. Together's list is an array, without an object around it. */
const decodeAnswer = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Union([List, Member])))

const textOf = (value: Schema.Json | undefined): string | undefined =>
  typeof value === "string" ? value : undefined

/** The model's name: `id` at OpenAI and Anthropic, `name` after `models/` at Google. */
const modelOf = ({ id, name }: Member): string =>
  textOf(id) ?? textOf(name)?.replace(/^models\//u, "") ?? ""

/** The price in credits per million tokens or another unit, and when the vendor ends the model. */
const stateOf = (model: TokenModel, price: ModelPrice): Member => {
  const { replacement, sunset } = model
  return {
    price:
      price.per === "million_tokens"
        ? { per: price.per, input: formatExact(price.input), output: formatExact(price.output) }
        : { per: price.per, amount: formatExact(price.amount) },
    ...(sunset === undefined ? {} : { sunset }),
    ...(replacement === undefined ? {} : { replacement })
  }
}

/** An alias in the form of a model in its vendor's lists, at the price of its most expensive model. */
const aliasMember = (dialect: Dialect, alias: CallAlias): Member => {
  const shown = shownTokenModel(alias)
  return memberOf(dialect, alias.alias, "alias", shown ? stateOf(shown, shown.price) : {})
}

/** A list entry for something that no vendor lists. */
const memberOf = (dialect: Dialect, id: string, owner: string, state: Member): Member => {
  switch (dialect) {
    case "anthropic":
      return { type: "model", id, display_name: id, created_at: "1970-01-01T00:00:00Z", ...state }
    case "gemini":
      return { name: `models/${id}`, displayName: id, ...state }
    case "openai":
      return { id, object: "model", created: 0, owned_by: owner, ...state }
  }
}

/** Refuses a single model that another route serves, because the vendor's response would not reveal that. */
export const refuseOtherModel = ({
  catalog,
  model,
  route
}: OpenPath): Effect.Effect<void, Problem> =>
  model !== undefined &&
  isModelRoute(route) &&
  catalog.priced(route.vendor, model) === undefined &&
  catalog.elsewhere(route.vendor, model) !== undefined
    ? Effect.fail(notOffered(catalog, route.vendor, model))
    : Effect.void

/** A single alias, which no vendor knows. */
export const aliasAt = (
  { catalog, model, route }: OpenPath,
  sandbox: boolean
): Relayed | undefined => {
  const alias =
    model === undefined || !isModelRoute(route) ? undefined : catalog.aliasOf(route.vendor, model)
  return alias && shown(aliasMember(dialectOfProvider(catalog, route.provider), alias), sandbox)
}

/** The name `vendor/model` in the path of a single model. Clients encode its slashes or leave them. */
export const listedIn = (path: string): string | undefined => {
  const name = /^\/v1\/models\/([^/]+?(?:\/|%2f).+)$/iu.exec(path)?.[1]
  return name?.replaceAll(/%(?:2f|3a|40)/giu, decodeURIComponent)
}

/**
 * Another vendor's model as the list shows it. Fails with 2006 if the list does not have it, and with 1004 if the key
 * does not allow it.
 */
export const modelElsewhere = (
  { principal, to: { catalog, route } }: Pick<PassthroughCall, "principal" | "to">,
  listed: string,
  sandbox: boolean,
  nowMillis: number
): Effect.Effect<Relayed, Problem> => {
  const member = modelsElsewhere(catalog, route, nowMillis).find((it) => modelOf(it) === listed)
  const model = catalog.tokenModels.find((it) => nameOf(it) === listed)
  if (model !== undefined && !allowsModel(principal, [model.model])) {
    return Effect.fail(modelNotAllowed(listed))
  }
  return member === undefined
    ? Effect.fail(notOffered(catalog, route.vendor, listed))
    : Effect.succeed({ ...shown(member, sandbox), ending: model && endingOf(model) })
}

const shown = (member: Member, sandbox: boolean): Relayed => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: utf8.encode(JSON.stringify(member)),
  sandbox,
  ...unmetered
})

const utf8 = new TextEncoder()

/**
 * The models of a vendor's list that the key may call here, each with its price. All others, including the operator's
 * private models, are left out. Fails with 2006 if the single model requested is left out, and with 5002 if the
 * vendor's response is neither a JSON object nor an array. docs/reference/passthrough.md#lists-of-models
 */
export const soldModels = (
  {
    isShared,
    principal,
    to: { catalog, model, route }
  }: Pick<PassthroughCall, "isShared" | "principal" | "to">,
  relayed: Relayed,
  nowMillis: number
): Effect.Effect<Relayed, Problem> => {
  if (!isModelRoute(route) || relayed.status !== 200) return Effect.succeed(relayed)
  const { body } = relayed
  const answer =
    body instanceof Uint8Array
      ? Option.getOrUndefined(decodeAnswer(Buffer.from(body).toString("utf8")))
      : undefined
  if (answer === undefined) return unreadable
  const sold = (member: Member): ReadonlyArray<Member> => {
    const name = modelOf(member)
    const found = catalog.priced(route.vendor, name)
    const price = found && priceAt(found, nowMillis)
    return found === undefined ||
      price === undefined ||
      !allowsModel(principal, [name, found.model])
      ? []
      : [{ ...member, ...stateOf(found, price) }]
  }
  const send = (value: Member | ReadonlyArray<Member>) =>
    Effect.succeed({ ...relayed, body: utf8.encode(JSON.stringify(value)) })
  if (model !== undefined) {
    if (isList(answer)) return unreadable
    const [one] = sold(modelOf(answer) === "" ? { ...answer, id: model } : answer)
    const found = catalog.priced(route.vendor, model)
    return one === undefined
      ? Effect.fail(notOffered(catalog, route.vendor, model))
      : Effect.map(send(one), (one) => ({ ...one, ending: found && endingOf(found) }))
  }
  const aliases = catalog.aliases
    .filter(
      ({ targets, vendor }) =>
        vendor === route.vendor && targets.every((it) => allowsModel(principal, [it.model.model]))
    )
    .map((alias) => aliasMember(dialectOfProvider(catalog, route.provider), alias))
  const others = isShared
    ? modelsElsewhere(catalog, route, nowMillis, (it) => allowsModel(principal, [it.model]))
    : []
  const listed = (members: ReadonlyArray<Member>) => [
    ...members.flatMap(sold),
    ...aliases,
    ...others
  ]
  if (isList(answer)) return send(listed(answer))
  const lists = ["data", "models"].flatMap((name) =>
    Option.match(decodeList(answer[name]), {
      onNone: () => [],
      onSome: (members) => [[name, listed(members)] as const]
    })
  )
  return send({ ...answer, ...Object.fromEntries(lists) })
}

/** Models of other vendors of the same dialect, as `vendor/model`. */
const modelsElsewhere = (
  catalog: UpstreamCatalog,
  { provider, vendor }: OpenRoute,
  nowMillis: number,
  isShown: (model: TokenModel) => boolean = () => true
): ReadonlyArray<Member> => {
  const dialect = dialectOfProvider(catalog, provider)
  const vendors = new Set(
    catalog.routes
      .filter(
        (it) => it.meter.per === "tokens" && dialectOfProvider(catalog, it.provider) === dialect
      )
      .map((it) => it.vendor)
  )
  vendors.delete(vendor)
  return catalog.tokenModels.flatMap((model) => {
    const isListed = vendors.has(model.vendor) && isShown(model)
    const price = isListed ? priceAt(model, nowMillis) : undefined
    return price === undefined
      ? []
      : [memberOf(dialect, nameOf(model), model.vendor, stateOf(model, price))]
  })
}

const unreadable = Effect.fail(problem(5002, "The vendor's list of models cannot be read"))
