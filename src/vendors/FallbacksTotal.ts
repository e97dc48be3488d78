import { Metric } from "effect"
import type { SkipReason } from "../domain/task/Candidate.ts"

const total = Metric.counter("gateway_fallbacks_total", {
  description: "Models of an alias that were skipped before a task or a call began",
  incremental: true
})

interface Skipped {
  readonly vendor: string
  readonly model: string
}

/** Counts a skipped model of an alias. docs/reference/aliases.md#when-the-next-model-is-tried */
export const countFallback = ({ model, vendor }: Skipped, reason: SkipReason) =>
  Metric.update(Metric.withAttributes(total, { vendor, model, reason }), 1)
