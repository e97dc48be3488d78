import { Schema, Struct } from "effect"
import type { CatalogEntry } from "../CatalogEntry.ts"
import { entryOf, JobModel } from "./JobModel.ts"

/** Names of fields that may hold results: `image`, or a path such as `result.video`. */
export const OutputFields = Schema.Array(Schema.NonEmptyString).check(
  Schema.isMinLength(1, { message: "Expected at least one" })
)

/**
 * A model of a vendor with many models, whose body the catalog describes. Its members have the vendor's own names and
 * are sent unchanged. docs/catalog.md#models-with-a-body-of-their-own
 */
export const MediaModel = Schema.Struct({
  vendor: Schema.Literals(["fal", "replicate"]),
  ...Struct.omit(JobModel.fields, ["submit"]),
  upstreamModel: Schema.NonEmptyString,
  /** If absent, the usual fields are read; for documents, the whole output. */
  output: Schema.optionalKey(OutputFields)
})
export type MediaModel = typeof MediaModel.Type

const adapters = { fal: "fal-queue", replicate: "replicate" } as const

export const mediaModelOf = ({ output, vendor, ...model }: MediaModel): CatalogEntry => ({
  ...entryOf({ vendor, adapter: adapters[vendor] }, model),
  ...(output === undefined ? {} : { output })
})
