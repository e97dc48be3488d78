import { Option, Schema } from "effect"
import type { Handle, ResultItem, VendorResult } from "../../vendors/VendorClient.ts"

/**
 * The result of a blocking call, stored instead of a handle before it is processed. A process that takes over the task
 * continues from it and does not submit again.
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

/** The result stored instead of a handle, if there is one. Every poll checks for it, although few tasks have one. */
export const doneIn = (handle: Handle): Option.Option<VendorResult> =>
  "done" in handle ? Option.map(decodeDone(handle), ({ done }) => ({ items: done })) : Option.none()

/** The items contain no bytes: these are put into the artifact store first. */
export const doneHandle = (
  items: ReadonlyArray<Exclude<ResultItem, { _tag: "Bytes" }>>
): Handle => ({
  done: items.map((item) => ({ ...item }))
})
