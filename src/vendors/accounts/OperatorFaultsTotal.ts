import { Metric } from "effect"

const total = Metric.counter("gateway_vendor_operator_faults_total", {
  description:
    "Vendor responses that blame the service's own account: key, bill, model not enabled or gone"
})

/** What a fault concerns: the whole account, one model, or a model that the vendor withdrew. */
export type OperatorFaultCause = "account" | "model" | "gone_model"

/** Counts a fault that the operator has to repair. docs/operating.md#gatewayvendorrefuses */
export const countOperatorFault = (account: string, cause: OperatorFaultCause) =>
  Metric.update(Metric.withAttributes(total, { account, cause }), 1)
