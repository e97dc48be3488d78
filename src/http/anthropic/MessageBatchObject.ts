import { DateTime, Option, Schema } from "effect"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import type { MessageBatch } from "../../contract/MessageBatchesApi.ts"
import { messageBatchIdOf } from "../../domain/Ids.ts"
import { batchHours } from "../../domain/limits/FileLimits.ts"
import { isTerminal } from "../../domain/task/Task.ts"
import type { VendorBatchRow } from "../../tasks/vendorbatches/VendorBatches.ts"

const decodeBody = Schema.decodeUnknownOption(BatchBody)

/** The body of a batch; `None` once it has been removed. */
export const bodyOf = ({ body }: VendorBatchRow): Option.Option<BatchBody> => decodeBody(body)

const cancelled = 4004
const deadlinePassed = 4005

/**
 * The result type of requests for which the vendor returned no result. docs/reference/vendor-batches.md#anthropics-form
 */
export const restOf = ({ error }: VendorBatchRow): "canceled" | "expired" | "errored" => {
  if (error?.code === cancelled) return "canceled"
  return error?.code === deadlinePassed ? "expired" : "errored"
}

const isoOf = (time: DateTime.Utc | null): string | null =>
  time === null ? null : DateTime.formatIso(time)

/** A batch in Anthropic's format. While it runs, all its requests count as `processing`, as at Anthropic. */
export const messageBatchOf = (row: VendorBatchRow, baseUrl: string): MessageBatch => {
  const id = messageBatchIdOf(row.id)
  const isEnded = isTerminal(row.status)
  const body = bodyOf(row)
  return {
    id,
    type: "message_batch",
    processing_status: isEnded ? "ended" : row.cancellingAt === null ? "in_progress" : "canceling",
    request_counts: countsOf(
      row,
      Option.match(body, { onNone: () => 0, onSome: (it) => it.requests })
    ),
    created_at: DateTime.formatIso(row.createdAt),
    expires_at: DateTime.formatIso(DateTime.add(row.createdAt, { hours: batchHours })),
    ended_at: isEnded ? DateTime.formatIso(row.updatedAt) : null,
    cancel_initiated_at: isoOf(row.cancellingAt),
    archived_at: null,
    results_url:
      isEnded && (row.outputFile !== null || Option.isSome(body))
        ? `${baseUrl}/v1/messages/batches/${id}/results`
        : null
  }
}

const countsOf = (row: VendorBatchRow, total: number): MessageBatch["request_counts"] => {
  const none = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
  if (!isTerminal(row.status)) return { ...none, processing: total }
  const succeeded = row.outputFile === null ? 0 : (row.completed ?? 0)
  const errored = row.outputFile === null ? 0 : (row.failed ?? 0)
  const made = { ...none, succeeded, errored }
  const rest = restOf(row)
  return { ...made, [rest]: made[rest] + Math.max(0, total - succeeded - errored) }
}
