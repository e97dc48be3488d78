import { Schema } from "effect"

/**
 * The stored form of a request for a background response, used instead of a label's body. The request itself is an
 * artifact, because it may be large and must reach the vendor byte for byte. docs/reference/background.md
 */
export const ResponseBody = Schema.Struct({
  /** `artifact:art_…`: the request as its client sent it. */
  request: Schema.String,
  /** The length of the request, from which the prompt is estimated if the vendor reports no figures. */
  bytes: Schema.Int,
  /** Whether its events can be streamed. */
  stream: Schema.Boolean,
  /** The account that stores data to which the request refers. Absent if any account may run it. */
  account: Schema.optionalKey(Schema.String),
  /** The response that it continues, with its ids here and at the vendor. */
  previous: Schema.optionalKey(Schema.Struct({ id: Schema.String, vendor_id: Schema.String })),
  /** Members of the request that are shown until the vendor responds with its own. */
  shown: Schema.Record(Schema.String, Schema.Json)
})
export type ResponseBody = typeof ResponseBody.Type
