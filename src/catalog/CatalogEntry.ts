import { Schema } from "effect"
import { MediaKind } from "../domain/task/Task.ts"
import type { ResultKind } from "../domain/task/Task.ts"
import { Alias } from "./Alias.ts"
import { Label } from "./bodies/Bodies.ts"
import type { BodyLabel } from "./bodies/Bodies.ts"
import { Described } from "./jobs/JobModel.ts"
import { MediaModel, OutputFields } from "./jobs/MediaModel.ts"
import { OpenRoute, TokenModel } from "./OpenRoutes.ts"
import { Action, PathSegment } from "./PathSegment.ts"
import { PriceRule } from "./Price.ts"
import { priceRowFields } from "./PriceRow.ts"
import { shippedJobVendors } from "./ShippedVendors.ts"
import { UpstreamInput } from "./UpstreamInput.ts"
import { Vendor } from "./Vendors.ts"

/** Adapters in code. Adding a model for one of them needs no code. docs/reference/vendors.md#adapters */
export const AdapterName = Schema.Literals([
  "dashscope-async",
  "dashscope-sync",
  "gemini-image",
  "openai-image",
  "openai-video",
  "fal-queue",
  "replicate"
])
export type AdapterName = typeof AdapterName.Type

/** Runs the jobs of a vendor as its description says: `jobs/` and the vendor's name. ADR 0298 */
const JobsAdapter = Schema.TemplateLiteral(["jobs/", Schema.String])
export type JobsAdapter = typeof JobsAdapter.Type

/** The last two kinds run language models, which have token prices and no catalog entries. */
export type TaskAdapterName = AdapterName | JobsAdapter | "openai-responses" | BatchAdapterName

export type BatchAdapterName = "openai-batches" | "anthropic-batches"

/** The label of a model with a described body: `vendor/model`. */
const OwnLabel = Schema.TemplateLiteral([Schema.String, "/", Schema.String])

/** `copy`: results are copied to the artifact store. `vendor-url`: clients get the vendor's own URLs. */
const ArtifactPolicy = Schema.Literals(["copy", "vendor-url"])

/** One model of the gateway. */
export const CatalogEntry = Schema.Struct({
  /** Path segment after `/vendors/`. */
  vendor: PathSegment,
  /** Path segment and public name. The same as the label, unless `CATALOG_FILE` gives another name. */
  model: PathSegment,
  /** Determines the body and its media rules. */
  label: Schema.Union([Label, OwnLabel]),
  action: Action,
  /** The name of the result array in the response of GET. */
  result: MediaKind,
  adapter: Schema.Union([AdapterName, JobsAdapter]),
  /** The upstream's own model id. */
  upstreamModel: Schema.NonEmptyString,
  price: PriceRule,
  ...priceRowFields(PriceRule),
  artifacts: ArtifactPolicy,
  /** For `fal-queue` and `replicate`: the upstream names of the body's fields. */
  input: Schema.optionalKey(UpstreamInput),
  /** For `fal-queue` and `replicate`: the fields of the upstream's output that hold the results. */
  output: Schema.optionalKey(OutputFields),
  /** For a model with a described body: the body and, for a job vendor, the request. */
  described: Schema.optionalKey(Described)
}).annotate({ identifier: "CatalogEntry" })
export type CatalogEntry = typeof CatalogEntry.Type

/** A model that runs tasks: a media model, or a language model whose response is a task. */
export type TaskModel = Pick<CatalogEntry, "vendor" | "model" | "upstreamModel"> &
  Partial<Pick<CatalogEntry, "input" | "output" | "artifacts" | "described">> & {
    readonly label: BodyLabel
    readonly result: ResultKind
    readonly adapter: TaskAdapterName
  }

/** All members of an entry except its label, all optional. */
const change = {
  vendor: Schema.optionalKey(PathSegment),
  model: Schema.optionalKey(PathSegment),
  action: Schema.optionalKey(Action),
  result: Schema.optionalKey(MediaKind),
  adapter: Schema.optionalKey(AdapterName),
  upstreamModel: Schema.optionalKey(Schema.NonEmptyString),
  price: Schema.optionalKey(PriceRule),
  ...priceRowFields(PriceRule),
  artifacts: Schema.optionalKey(ArtifactPolicy),
  input: Schema.optionalKey(UpstreamInput),
  output: Schema.optionalKey(OutputFields)
}

const Change = Schema.Struct(change)

/**
 * `CATALOG_FILE`, applied to the built-in catalog: first `change` by label, then `remove` by label, then `add`. Members
 * that an added model omits come from the built-in model of the same label. docs/catalog.md#catalog-file
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
  /** Vendors, added or replaced. A string opens the shipped job vendor of that name. ADR 0296, ADR 0298 */
  vendors: Schema.optionalKey(
    Schema.Array(Schema.Union([Schema.Literals([...shippedJobVendors.keys()]), Vendor]))
  ),
  /** Upstream routes, added or replaced. ADR 0073. */
  routes: Schema.optionalKey(Schema.Array(OpenRoute)),
  /** Language models with their token prices, added or replaced. */
  tokenModels: Schema.optionalKey(Schema.Array(TokenModel)),
  add: Schema.optionalKey(
    Schema.Array(Schema.Struct({ label: Label, ...change, model: PathSegment }))
  ),
  /** Models of fal and Replicate with described bodies. docs/catalog.md#models-with-a-body-of-their-own */
  mediaModels: Schema.optionalKey(Schema.Array(MediaModel)),
  /** Names for several models, which are tried in turn. docs/catalog.md#aliases */
  aliases: Schema.optionalKey(Schema.Array(Alias))
})
export type CatalogFile = typeof CatalogFile.Type
