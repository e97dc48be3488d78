import { Schema } from "effect"

/**
 * What is stored of a request for a response in the background, instead of a label's body. Its bytes may be
 * many, and a vendor reads members in their order, so they are an artifact. docs/reference/background.md
 */
export const ResponseBody = Schema.Struct({
  /** `artifact:art_…`: the request as its client sent it. */
  request: Schema.String,
  /** Its length, by which the prompt is estimated if the vendor reports no figures. */
  bytes: Schema.Int,
  /** Its events can be streamed. */
  stream: Schema.Boolean,
  /** The account that keeps what the request refers to; absent: no matter which. */
  account: Schema.optionalKey(Schema.String),
  /** The response that it continues: its id here and at the vendor. */
  previous: Schema.optionalKey(Schema.Struct({ id: Schema.String, vendor_id: Schema.String })),
  /** Members of the request that are shown until the vendor shows them. */
  shown: Schema.Record(Schema.String, Schema.Json)
})
export type ResponseBody = typeof ResponseBody.Type
