import { Option, Schema } from "effect"
import type { Handle, ResultItem, VendorResult } from "../../vendors/VendorClient.ts"

/**
 * The result of a blocking call, recorded in place of a handle before anything else is done with it: a
 * process that takes the task over goes on from here and submits nothing again.
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

const decodeDone = Schema.decodeUnknownOption(DoneHandle)

/** The result that stands in place of a handle. Every poll asks, and nearly none has one. */
export const doneIn = (handle: Handle): Option.Option<VendorResult> =>
  "done" in handle ? Option.map(decodeDone(handle), ({ done }) => ({ items: done })) : Option.none()

/** Items without bytes: bytes are stored first. */
export const doneHandle = (
  items: ReadonlyArray<Exclude<ResultItem, { _tag: "Bytes" }>>
): Handle => ({
  done: items.map((item) => ({ ...item }))
})
