import { Schema } from "effect"
import { FileId } from "../../domain/Ids.ts"

/** What is stored of a vendor's batch, instead of a label's body. docs/reference/vendor-batches.md */
export const BatchBody = Schema.Struct({
  /** The file with its requests, one a line. */
  input_file_id: FileId,
  /** Its length. */
  bytes: Schema.Int,
  /** The path of every request, such as `/v1/chat/completions`. */
  endpoint: Schema.String,
  requests: Schema.Int,
  /** The models that the requests name, if there are several; the first is that of the task. */
  models: Schema.optionalKey(Schema.NonEmptyArray(Schema.String)),
  /** Every `custom_id` has room for the mark by which Anthropic's adapter finds a lost batch. */
  marked: Schema.optionalKey(Schema.Boolean),
  /** The client's `anthropic-beta`. */
  beta: Schema.optionalKey(Schema.String)
})
export type BatchBody = typeof BatchBody.Type
