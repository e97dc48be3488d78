import { Metric } from "effect"

const total = Metric.counter("gateway_vendor_operator_faults_total", {
  description:
    "Faults that the operator repairs: key, bill, model not enabled or gone; polls that wait for a catalog"
})

/** The subject of a fault: the whole account, one model, or a model that the vendor withdrew. */
export type OperatorFaultCause = "account" | "model" | "gone_model"

/** The catalog under which a running job was bought cannot be read. ADR 0255 */
type CatalogFaultCause = "catalog"

/** Counts a fault that the operator has to repair. docs/operating.md#gatewayvendorrefuses */
export const countOperatorFault = (
  account: string,
  cause: OperatorFaultCause | CatalogFaultCause
) => Metric.update(Metric.withAttributes(total, { account, cause }), 1)
