/** Texts of usage. */
export const usageTexts = {
  title: "Usage",
  from: "From day",
  to: "To day",
  by: "Rows by",
  groupings: {
    model: "Model",
    key: "Key",
    day: "Day",
    "key,model": "Key and model",
    "day,model": "Day and model",
    "day,key": "Day and key"
  },
  measure: "Chart of",
  measures: {
    amount: "Credits",
    tasks: "Tasks",
    calls: "Calls",
    input_tokens: "Input tokens",
    output_tokens: "Output tokens",
    images: "Images",
    videos: "Videos",
    audios: "Sounds"
  },
  requests: "Tasks and calls",
  tokens: "Tokens",
  results: "Results",
  key: "Key",
  day: "Day",
  cached: "Cached input",
  seconds: "Seconds of video",
  rows: "What it is made of",
  real: "Real",
  simulated: "Simulated",
  noKey: "No key",
  noModel: "No model",
  chart: (measure: string) => `${measure} a day (UTC); choose a day to see its rows`,
  all: (from: string, to: string) => `${from} to ${to}`,
  of: (day: string) => `On ${day}`,
  allDays: "Show all days",
  caption: "Usage",
  empty: "Nothing was charged in this time",
  emptyDetail:
    "Completed tasks and settled calls are counted, on the day in UTC on which they ended.",
  dayHelp:
    "Usage counts on the day of the charge; tasks and calls are listed by when they began. What began before midnight stands under the day before."
}
