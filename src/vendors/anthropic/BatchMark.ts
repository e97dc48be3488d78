import { createHash } from "node:crypto"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { batchMarkCharacters } from "../../domain/limits/FileLimits.ts"

/**
 * Stands before each `custom_id` of a task's batch, because Anthropic's batches have no metadata: the results of a batch
 * show whose it is. 60 bits tell the batches of an account apart.
 */
export const markOf = (taskId: string): string =>
  createHash("sha256").update(taskId).digest("base64url").slice(0, batchMarkCharacters)

/** A request with the mark before its `custom_id`, however that is written. */
export const marked = (line: Uint8Array, mark: string): Uint8Array => {
  const customId = memberOf(line, "custom_id")
  if (customId === undefined) return line
  const at = customId.byteOffset - line.byteOffset + 1
  return Buffer.concat([line.subarray(0, at), Buffer.from(mark), line.subarray(at)])
}
