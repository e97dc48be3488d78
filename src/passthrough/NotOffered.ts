import type { UpstreamCatalog } from "../catalog/UpstreamCatalog.ts"
import { problem } from "../domain/Problem.ts"
import type { Problem } from "../domain/Problem.ts"

/**
 * The problem for a model without a price at a vendor: names the route that serves it, or the reason why none does.
 */
export const notOffered = (catalog: UpstreamCatalog, vendor: string, model: string): Problem => {
  const name = model.slice(0, 100)
  if (catalog.priced(vendor, model) !== undefined) {
    return problem(2006, `The model ${name} is not offered here: it has no price on this day`)
  }
  const elsewhere = catalog.elsewhere(vendor, model)
  if (elsewhere !== undefined) return problem(2006, elsewhere)
  const because = catalog.unsold(vendor, model) ?? "it has no price"
  return problem(2006, `The model ${name} is not offered here: ${because}`)
}
