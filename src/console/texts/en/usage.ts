/** Texts of usage. */
export const usageTexts = {
  aboutAll: "What all users were charged.",
  margin: "The gateway does not know vendors' prices. To see the margin,",
  compare: "compare a vendor's bill",
  user: "User",
  work: "Work",
  from: "From day",
  to: "To day",
  range: "Range",
  days: (count: number) => `${count} days`,
  today: "Today",
  thisMonth: "This month",
  by: "Group by",
  groupings: {
    model: () => "Model",
    key: () => "Key",
    day: (per: string) => per,
    "key,model": () => "Key + model",
    "day,model": (per: string) => `${per} + model`,
    "day,key": (per: string) => `${per} + key`,
    user: () => "User",
    "user,model": () => "User + model",
    "day,user": (per: string) => `${per} + user`
  },
  per: "Per",
  periods: { hour: "Hour", day: "Day" },
  measure: "Chart",
  measures: {
    amount: "Credits",
    requests: "Requests",
    errors: "Errors",
    duration: "Duration",
    tokens: "Tokens",
    results: "Results"
  },
  columns: {
    tasks: "Tasks",
    calls: "Calls",
    input_tokens: "Input tokens",
    output_tokens: "Output tokens",
    images: "Images",
    videos: "Videos",
    audios: "Audio"
  },
  half: "p50",
  most: "p95",
  other: "Other",
  errorShare: (percent: string) => `${percent} of all`,
  requests: "Tasks and calls",
  key: "Key",
  cached: "Cached input",
  seconds: "Seconds of video",
  real: "Real",
  simulated: "Simulated",
  noKey: "No key",
  noModel: "No model",
  chart: (measure: string, per: string) =>
    `${measure} per ${per.toLowerCase()} (UTC). Select a bar for the rows of its day.`,
  durations: (per: string) =>
    `Duration per ${per.toLowerCase()} (UTC): half of the requests took no longer than p50, 95% no longer than p95.`,
  durationsBy: (per: string) =>
    `Duration per ${per.toLowerCase()} (UTC) that 95% of the requests did not exceed (p95).`,
  of: (day: string) => `On ${day}`,
  allDays: "Show all days",
  caption: "Usage",
  empty: "No usage in this period",
  emptyDetail: "Tasks and calls count on the day (UTC) on which they ended.",
  dayHelp:
    "Usage counts on the day of the charge, but tasks and calls are listed by their start. One that started before midnight is listed under the day before."
}
