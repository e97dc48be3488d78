import { Metric } from "effect"
import type { SkipReason } from "../domain/Candidate.ts"

const total = Metric.counter("gateway_fallbacks_total", {
  description: "Models of an alias that were passed over when a task or a call was to begin",
  incremental: true
})

interface Skipped {
  readonly vendor: string
  readonly model: string
}

/** Counts a model of an alias that was passed over. docs/reference/aliases.md#when-the-next-model-is-tried */
export const countFallback = ({ model, vendor }: Skipped, reason: SkipReason) =>
  Metric.update(Metric.withAttributes(total, { vendor, model, reason }), 1)
