/** Texts of usage. */
export const usageTexts = {
  title: "Usage",
  from: "From day",
  to: "To day",
  by: "Group by",
  groupings: {
    model: "Model",
    key: "Key",
    day: "Day",
    "key,model": "Key and model",
    "day,model": "Day and model",
    "day,key": "Day and key"
  },
  measure: "Chart",
  measures: {
    amount: "Credits",
    tasks: "Tasks",
    calls: "Calls",
    input_tokens: "Input tokens",
    output_tokens: "Output tokens",
    images: "Images",
    videos: "Videos",
    audios: "Audio"
  },
  requests: "Tasks and calls",
  tokens: "Tokens",
  results: "Results",
  key: "Key",
  day: "Day",
  cached: "Cached input",
  seconds: "Seconds of video",
  rows: "Breakdown",
  real: "Real",
  simulated: "Simulated",
  noKey: "No key",
  noModel: "No model",
  chart: (measure: string) => `${measure} per day (UTC); select a day to see its rows`,
  all: (from: string, to: string) => `${from} to ${to}`,
  of: (day: string) => `On ${day}`,
  allDays: "Show all days",
  caption: "Usage",
  empty: "No charges in this period",
  emptyDetail: "Completed tasks and settled calls count on the day (UTC) on which they ended.",
  dayHelp:
    "Usage counts on the day of the charge, but tasks and calls are listed by their start. One that started before midnight is listed under the day before."
}
