import { DateTime, Option, Schema } from "effect"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import type { BatchObject } from "../../contract/BatchesApi.ts"
import { batchIdOf } from "../../domain/Ids.ts"
import { at } from "../../domain/json/Json.ts"
import { batchHours } from "../../domain/limits/FileLimits.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"

type Status = BatchObject["status"]

const cancelled = 4004

/** The status of a batch in OpenAI's terms. docs/reference/vendor-batches.md#states */
export const batchStatusOf = (row: VendorBatchRow): Status => {
  switch (row.status) {
    case "completed":
      return "completed"
    case "failed":
      if (row.error?.code === cancelled) return "cancelled"
      return row.batchStatus === "expired" ? "expired" : "failed"
    case "pending":
      return "validating"
    case "processing":
      return runningStatusOf(row)
  }
}

/** The status of a task that has not ended. The vendor may already have ended the batch while its results are read. */
const runningStatusOf = ({ batchStatus, cancellingAt }: VendorBatchRow): Status => {
  if (cancellingAt !== null) return "cancelling"
  if (batchStatus === "completed" || batchStatus === "expired" || batchStatus === "cancelled") {
    return "finalizing"
  }
  return batchStatus ?? "validating"
}

const decodeBody = Schema.decodeUnknownOption(BatchBody)

const secondsOf = (time: DateTime.Utc): number => Math.floor(DateTime.toEpochMillis(time) / 1000)

/** A batch in OpenAI's format. Once the body has been removed, only the requests with a result are counted. */
export const batchOf = (row: VendorBatchRow): BatchObject => {
  const body = Option.getOrUndefined(decodeBody(row.body))
  const status = batchStatusOf(row)
  const ended = secondsOf(row.updatedAt)
  const when = (is: Status) => (status === is ? ended : null)
  const { error } = row
  const completed = row.completed ?? 0
  const failed = row.failed ?? 0
  return {
    id: batchIdOf(row.id),
    object: "batch",
    endpoint: body?.endpoint ?? "",
    model: row.model,
    errors:
      status !== "failed" || error === null
        ? null
        : {
            object: "list",
            data: [{ code: String(error.code), message: error.detail, param: null, line: null }]
          },
    input_file_id: body?.input_file_id ?? "",
    completion_window: "24h",
    status,
    output_file_id: row.outputFile,
    error_file_id: row.errorFile,
    created_at: secondsOf(row.createdAt),
    in_progress_at: row.startedAt === null ? null : secondsOf(row.startedAt),
    expires_at: secondsOf(DateTime.add(row.createdAt, { hours: batchHours })),
    finalizing_at: null,
    completed_at: when("completed"),
    failed_at: when("failed"),
    expired_at: when("expired"),
    cancelling_at: row.cancellingAt === null ? null : secondsOf(row.cancellingAt),
    cancelled_at: when("cancelled"),
    request_counts: {
      total: body?.requests ?? completed + failed,
      completed,
      failed
    },
    ...(row.usage === null ? {} : { usage: usageOf(row.usage) }),
    metadata: row.metadata
  }
}

const usageOf = (usage: Readonly<Record<string, unknown>>) => {
  const count = (name: string): number => {
    const value = at(usage, name)
    return typeof value === "number" ? value : 0
  }
  const [input, output] = [count("inputTokens"), count("outputTokens")]
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: count("cachedInputTokens") },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: count("reasoningTokens") },
    total_tokens: input + output
  }
}
