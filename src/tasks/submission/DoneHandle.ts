import { Option, Schema } from "effect"
import type { Handle, ResultItem, VendorResult } from "../../vendors/VendorClient.ts"

/**
 * The result of a blocking call, recorded in place of a handle before anything else is done with it.
 * Another process that takes the task over continues from here and submits nothing.
 * docs/reference/vendors.md#paid-submit-protocol
 */
const DoneHandle = Schema.Struct({
  done: Schema.Array(
    Schema.Union([
      Schema.TaggedStruct("Url", {
        url: Schema.String,
        mime: Schema.String,
        needsAuth: Schema.Boolean,
        isShortLived: Schema.optionalKey(Schema.Boolean)
      }),
      Schema.TaggedStruct("Kept", { url: Schema.String })
    ])
  )
})

const decode = Schema.decodeUnknownOption(DoneHandle)

export const doneIn = (handle: Handle): Option.Option<VendorResult> =>
  Option.map(decode(handle), ({ done }) => ({ items: done }))

/** For items without bytes: `TaskOutput.persistInline` stores the bytes first. */
export const doneHandle = (
  items: ReadonlyArray<Exclude<ResultItem, { _tag: "Bytes" }>>
): Handle => ({
  done: items.map((item) => ({ ...item }))
})
