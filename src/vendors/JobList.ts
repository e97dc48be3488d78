import { Option, Schema } from "effect"
import type { SubmitRequest } from "./VendorClient.ts"
import { VendorError } from "./VendorError.ts"

/** The error of an adapter that cannot read its vendor's job list to the end. */
export const longList = new VendorError({
  class: "RETRYABLE",
  message: "The upstream lists more jobs than the gateway reads"
})

const decode = Schema.decodeUnknownOption(Schema.Struct({ prompt: Schema.NonEmptyString }))

/** The prompt of a request, if it has one. */
export const promptIn = ({ body }: SubmitRequest): string | undefined =>
  Option.getOrUndefined(decode(body))?.prompt
