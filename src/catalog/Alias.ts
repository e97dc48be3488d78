import { Schema } from "effect"
import { aliasModelsMax, aliasWeightMax } from "../domain/limits/ShapeLimits.ts"
import { PathSegment } from "./PathSegment.ts"

/** The `vendor/model` name of a catalog row. */
const ModelName = Schema.String.check(
  Schema.isPattern(/^[^/]+(?:\/[^/]+)+$/u, { expected: "a model as vendor/model" })
)

const AliasTarget = Schema.Struct({
  model: ModelName,
  /**
   * How often the model is tried first, relative to the other weights. If no model has a weight, they are tried in
   * order.
   */
  weight: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: aliasWeightMax }))
  )
})

/** A name for several models with the same kind of body, which are tried in turn. docs/catalog.md#aliases, ADR 0224. */
export const Alias = Schema.Struct({
  alias: PathSegment,
  /** Path segment after `/vendors/`. If absent, that of the first model. */
  vendor: Schema.optionalKey(PathSegment),
  to: Schema.Array(AliasTarget).check(
    Schema.isMinLength(1, { message: "Expected at least one model" }),
    Schema.isMaxLength(aliasModelsMax, { message: `Expected at most ${aliasModelsMax} models` })
  )
}).annotate({ identifier: "Alias" })
export type Alias = typeof Alias.Type

export const nameOf = ({ model, vendor }: { readonly model: string; readonly vendor: string }) =>
  `${vendor}/${model}`

export const aliasKey = ({ alias, to, vendor }: Alias): string =>
  `${vendor ?? vendorOf(to[0]?.model ?? "")}/${alias}`

/** The vendor of a `vendor/model` name. */
export const vendorOf = (name: string): string => name.slice(0, name.indexOf("/"))
