/** Texts of the comparison with vendors' bills. */
export const billTexts = {
  about:
    "Compares vendors' bills with the jobs bought there and with what users were charged. Nothing is changed or stored.",
  vendor: "Vendor",
  vendors: {
    openai: "OpenAI",
    anthropic: "Anthropic",
    gemini: "Google Gemini",
    dashscope: "Alibaba Cloud (DashScope)",
    fal: "fal",
    replicate: "Replicate"
  },
  file: "Bill",
  fileHelp:
    "CSV files in US dollars, each of at most 62 days. 1 US dollar is 100 credits. Several bills are added up until you leave the page.",
  noFile: "Choose the file of the bill",
  failed: (name: string) => `${name} was not compared:`,
  remove: "Remove",
  removeBill: (file: string) => `Remove ${file}`,
  all: (count: number) => `${count} bills together`,
  columns: "Column names",
  columnsHelp: "Leave empty to use those of the vendor's own export.",
  columnNames: { id: "Job id", model: "Model", date: "Date", amount: "Amount" },
  compare: "Compare",
  reading: "Comparing…",
  result: (vendor: string, days: string) => `${vendor}, ${days}`,
  chart: "Charged, billed and margin of each day, in credits",
  marginOf: (credits: string) => `${credits} margin`,
  billed: "Billed",
  lines: (count: number, matched: number) =>
    `${count.toLocaleString("en")} lines, ${matched.toLocaleString("en")} matched by id`,
  chargedNote: "for the same work",
  margin: "Margin",
  share: "Margin %",
  percent: (value: number) => `${value.toFixed(1).replace("-", "−")}%`,
  models: "Margin by model",
  modelsHelp:
    "What users were charged for the work on the bill, minus the bill. Excludes running tasks and work that the bill does not name.",
  difference: "Difference",
  uncharged: "Billed, not charged",
  unbilled: "Charged, not billed",
  items: (count: number) => (count === 1 ? "1 item" : `${count.toLocaleString("en")} items`),
  agrees: "The bill agrees with the charges.",
  differences: "Different amounts",
  differencesHelp: "By day and model. A negative difference is a loss.",
  unchargedHelp: "The vendor billed these, and no user was charged for them.",
  unbilledHelp:
    "Users were charged for these, and they are not on the bill. A job of the last day may be on the next one.",
  shown: (count: number) => `The first ${count.toLocaleString("en")} are shown.`,
  day: "Day",
  model: "Model",
  charged: "Charged",
  id: "Vendor's id",
  work: "Task or call",
  unknown: "Unknown"
}
