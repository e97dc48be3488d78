/** Texts of Home. */
export const homeTexts = {
  balance: "Available",
  held: (credits: string) => `${credits} held for running work`,
  runway: (days: number) => (days > 365 ? "lasts over a year" : `lasts about ${days} days`),
  today: "Spent today",
  week: "Last 7 days",
  change: (percent: number) =>
    percent === 0
      ? "as in the prior week"
      : `${percent > 0 ? "+" : "−"}${Math.abs(percent).toLocaleString("en")}% vs. prior week`,
  noWeekBefore: "nothing the week before",
  running: "Running tasks",
  atLeast: (count: number) => `${count}+`,
  success: "Success rate",
  successOf: (count: number) => (count === 1 ? "of the last task" : `of the last ${count} tasks`),
  failing: "Failing webhooks",
  problems: "Needs attention",
  lowBalance: "Your balance is below the alert",
  failingEndpoint: "A webhook endpoint is failing",
  failedAttempts: (count: number) =>
    count === 1 ? "1 failed attempt" : `${count} failed attempts`,
  expiring: (name: string) => `The key ${name} expires soon`,
  usedUp: (name: string) => `The key ${name} has used up its budget`,
  spending: "Spending",
  byKey: "This month by key",
  byModel: "This month by model",
  chart: "Credits per day, last 30 days (UTC)",
  newImage: "New image",
  newChat: "New chat",
  results: "Latest results",
  latest: "Latest tasks",
  allTasks: "All tasks",
  firstTitle: "Create your first image",
  stepsTitle: (done: number, all: number) => `First steps: ${done} of ${all}`,
  first: {
    image: "Make an image in the playground",
    key: "Create an API key for your program",
    call: "Make the first request with it",
    webhook: "Add a webhook endpoint",
    done: "(done)"
  }
}
