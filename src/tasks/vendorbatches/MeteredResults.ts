import { Effect, Metric, Option, Stream } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { receiptsAtOnce, resultLineBytesMax } from "../../domain/limits/FileLimits.ts"
import { inTurns, LineSplitter } from "../../domain/Lines.ts"
import type { Line } from "../../domain/Lines.ts"
import type { VendorError } from "../../vendors/VendorError.ts"
import type { Fenced } from "../submission/PaidSubmit.ts"
import { receiptOf } from "./ResultLine.ts"
import type { BatchPricing } from "./ResultLine.ts"
import type { BatchReceipt } from "./VendorBatchStore.ts"

/** The digests of the requests that have a result, by the kind of the result file. */
export type ReadResults = Map<ResultFile["kind"], Set<string>>

export interface ResultFile {
  readonly kind: "output" | "errors"
  readonly pricing: BatchPricing
  readonly task: Pick<TaskRow, "id">
  readonly read: ReadResults
}

type Write = (receipts: ReadonlyArray<BatchReceipt>) => Effect.Effect<void, Fenced>

const resultFaults = Metric.counter("gateway_batch_result_faults_total", {
  description: "Results in vendors' batches whose request is unknown or already has a result",
  incremental: true
})

/** Passes the bytes through unchanged. The receipts of the lines seen so far are written before the next chunk is read. */
export const metered = (
  { kind, pricing, read, task }: ResultFile,
  bytes: Stream.Stream<Uint8Array, VendorError>,
  write: Write
): Stream.Stream<Uint8Array, VendorError | Fenced> =>
  Stream.suspend(() => {
    const splitter = new LineSplitter(resultLineBytesMax)
    const faults = { unknown: 0, repeated: 0 }
    let waiting: Array<BatchReceipt> = []
    // Reset, because a file that is read again repeats its results
    const seen = new Set<string>()
    read.set(kind, seen)
    const isRepeated = ({ digest }: BatchReceipt) => [...read.values()].some((it) => it.has(digest))
    const flush = Effect.suspend(() => {
      const receipts = waiting
      waiting = []
      return write(receipts)
    })
    const add = inTurns((line: Line) => {
      if (line.length === 0) return Effect.void
      const receipt = receiptOf(pricing, line)
      if (Option.isNone(receipt)) {
        faults.unknown += 1
      } else if (isRepeated(receipt.value)) {
        faults.repeated += 1
      } else {
        seen.add(receipt.value.digest)
        waiting.push(receipt.value)
      }
      return waiting.length >= receiptsAtOnce ? flush : Effect.void
    })
    const note = Effect.forEach(["unknown", "repeated"] as const, (fault) =>
      noteFaults({ account: pricing.account, fault, task: task.id }, faults[fault])
    )
    const rest = Effect.suspend(() => add(splitter.end())).pipe(
      Effect.andThen(Effect.suspend(() => flush)),
      Effect.andThen(Effect.suspend(() => note))
    )
    return Stream.concat(
      Stream.tap(bytes, (chunk) => add(splitter.push(chunk))),
      Stream.fromEffectDrain(rest)
    )
  })

interface ResultFault {
  readonly account: string
  readonly fault: "unknown" | "repeated"
  readonly task: string
}

/** Such results cost nothing. */
const noteFaults = ({ account, fault, task }: ResultFault, count: number) =>
  count === 0
    ? Effect.void
    : Effect.andThen(
        Metric.update(Metric.withAttributes(resultFaults, { account, fault }), count),
        Effect.logWarning("The vendor's batch has results that are not charged").pipe(
          Effect.annotateLogs({ account, fault, count, task })
        )
      )
