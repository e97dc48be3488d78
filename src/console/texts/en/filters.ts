/** What lists are filtered by. */
export const filterTexts = {
  legend: "Filters",
  set: (count: number) => `Filters (${count})`,
  all: "All",
  any: "Any",
  clear: "Clear",
  status: "Status",
  outcome: "Outcome",
  model: "Model",
  vendor: "Vendor",
  key: "API key",
  traceId: "Trace id",
  account: "Account",
  since: "From",
  until: "Before",
  minCost: "Minimum cost",
  maxCost: "Maximum cost"
}
