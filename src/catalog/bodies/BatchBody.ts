import { Schema } from "effect"
import { FileId } from "../../domain/Ids.ts"

/** The stored form of a vendor's batch, used instead of a label's body. docs/reference/vendor-batches.md */
export const BatchBody = Schema.Struct({
  /** The file with the batch's requests, one per line. */
  input_file_id: FileId,
  /** The size of the file. */
  bytes: Schema.Int,
  /** The path of every request, such as `/v1/chat/completions`. */
  endpoint: Schema.String,
  requests: Schema.Int,
  /** The models that the requests name, if there are several. The first is the model of the task. */
  models: Schema.optionalKey(Schema.NonEmptyArray(Schema.String)),
  /** Whether every `custom_id` has room for the mark by which Anthropic's adapter finds a lost batch. */
  marked: Schema.optionalKey(Schema.Boolean),
  /** The client's `anthropic-beta` header. */
  beta: Schema.optionalKey(Schema.String)
})
export type BatchBody = typeof BatchBody.Type
