import { Schema } from "effect"
import { ResultKind } from "../domain/Task.ts"
import { Label } from "./bodies/Bodies.ts"
import { OpenRoute, PathSegment, TokenModel } from "./OpenRoutes.ts"
import { PriceRule } from "./Price.ts"
import { UpstreamInput } from "./UpstreamInput.ts"

/** The last part of a create path. Spec, Endpoints. */
export const Action = Schema.Literals(["generation", "edit"])
export type Action = typeof Action.Type

/** Protocol families that the service speaks (vendors.md, section A). A new model of one needs no code. */
export const Adapter = Schema.Literals([
  "dashscope-async",
  "dashscope-sync",
  "gemini-image",
  "openai-image",
  "openai-video",
  "fal-queue",
  "replicate"
])
export type Adapter = typeof Adapter.Type

/** Whether results are copied to the artifact store, or the vendor's own URLs are handed on. */
const ArtifactPolicy = Schema.Literals(["copy", "vendor-url"])

/** One model of the gateway. */
export const CatalogEntry = Schema.Struct({
  /** Path segment after `/vendors/`. */
  vendor: PathSegment,
  /** Path segment and public name; a real identifier in `CATALOG_FILE`, else the label. */
  model: PathSegment,
  /** Which body and which media rules apply. */
  label: Label,
  action: Action,
  /** The result array of GET. Spec, Task result. */
  result: ResultKind,
  /** Protocol family that speaks to the upstream, such as `dashscope-async`. */
  adapter: Adapter,
  /** The upstream's own model id. */
  upstreamModel: Schema.NonEmptyString,
  price: PriceRule,
  artifacts: ArtifactPolicy,
  /** For `fal-queue` and `replicate`: how the body's fields are named upstream. */
  input: Schema.optionalKey(UpstreamInput)
}).annotate({ identifier: "CatalogEntry" })
export type CatalogEntry = typeof CatalogEntry.Type

/** All of an entry but its label, each optional: what a catalog file says of a model. */
const change = {
  vendor: Schema.optionalKey(PathSegment),
  model: Schema.optionalKey(PathSegment),
  action: Schema.optionalKey(Action),
  result: Schema.optionalKey(ResultKind),
  adapter: Schema.optionalKey(Adapter),
  upstreamModel: Schema.optionalKey(Schema.NonEmptyString),
  price: Schema.optionalKey(PriceRule),
  artifacts: Schema.optionalKey(ArtifactPolicy),
  input: Schema.optionalKey(UpstreamInput)
}

const Change = Schema.Struct(change)

/**
 * `CATALOG_FILE` (contract 9), applied to the built-in catalog: `change` by label, then `remove` by
 * label, then `add` (fields left out come from the built-in model of the same label).
 */
export const CatalogFile = Schema.Struct({
  change: Schema.optionalKey(
    Schema.Struct({
      "text-to-video-spark": Schema.optionalKey(Change),
      "keyframe-to-video-plus": Schema.optionalKey(Change),
      "image-edit": Schema.optionalKey(Change),
      "text-to-image-max": Schema.optionalKey(Change),
      "image-edit-pro": Schema.optionalKey(Change),
      "image-edit-max": Schema.optionalKey(Change),
      "text-to-image-preview": Schema.optionalKey(Change),
      "image-to-video-spark": Schema.optionalKey(Change),
      "video-edit-plus": Schema.optionalKey(Change)
    })
  ),
  remove: Schema.optionalKey(Schema.Array(Label)),
  /** Upstream routes opened to the passthrough, or metered otherwise. ADR 0073. */
  routes: Schema.optionalKey(Schema.Array(OpenRoute)),
  /** Language models and their token prices, added or changed. */
  tokenModels: Schema.optionalKey(Schema.Array(TokenModel)),
  add: Schema.optionalKey(
    Schema.Array(Schema.Struct({ label: Label, ...change, model: PathSegment }))
  )
})
export type CatalogFile = typeof CatalogFile.Type
