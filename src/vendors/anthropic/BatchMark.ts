import { createHash } from "node:crypto"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { batchMarkCharacters } from "../../domain/limits/FileLimits.ts"

/**
 * The prefix of each `custom_id` in a task's batch. Anthropic's batches have no metadata, so the results show by this
 * mark which task a batch belongs to. Its 60 bits distinguish the batches of an account.
 */
export const markOf = (taskId: string): string =>
  createHash("sha256").update(taskId).digest("base64url").slice(0, batchMarkCharacters)

/** Returns the request with the mark before its `custom_id`, whatever JSON escapes the `custom_id` uses. */
export const marked = (line: Uint8Array, mark: string): Uint8Array => {
  const customId = memberOf(line, "custom_id")
  if (customId === undefined) return line
  const at = customId.byteOffset - line.byteOffset + 1
  return Buffer.concat([line.subarray(0, at), Buffer.from(mark), line.subarray(at)])
}
