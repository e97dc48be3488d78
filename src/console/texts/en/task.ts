/** Texts of tasks and their timelines. */
export const taskTexts = {
  result: "Result",
  noResult: "The result appears here when the task completes.",
  progress: (percent: number) => `${percent}% done`,
  input: "Input",
  receipt: "Receipt",
  held: "Held",
  captured: "Charged",
  released: "Released",
  timeline: "Timeline",
  details: "Details",
  id: "Task id",
  runAgain: "Run again",
  runAgainTitle: "Run this task again?",
  runAgainDetail: (credits: string) =>
    `A new task with the same input. It costs ${credits} credits.`,
  runAgainBlocked: "The input contained media that are no longer stored.",
  copyTest: "Copy as test",
  testName: "as a test",
  inputMedia: "Input media",
  inputGone: "Input media are kept for 24 hours; these have been deleted.",
  cancelTask: "Cancel task",
  cancelTitle: "Cancel this task?",
  cancelDetail: "If the vendor has started the job, it may no longer be possible to stop it.",
  createdTask: "Created",
  moved: {
    pending: "Pending",
    processing: "Processing started",
    completed: "Completed",
    failed: "Failed"
  },
  attempt: (n: number, vendor: string) => `Attempt ${n} at ${vendor}`,
  earlier: (count: number) =>
    count === 1 ? "1 attempt before it failed" : `${count} attempts before it failed`,
  show: "Show",
  waits: "waiting",
  attempts: (count: number) => `${count} attempts`,
  account: (account: string) => `account ${account}`,
  entry: {
    hold: (credits: string) => `${credits} credits held`,
    capture: (credits: string) => `${credits} credits charged`,
    late_charge: (credits: string) => `${credits} credits charged late`,
    release: (credits: string) => `${credits} credits released`,
    top_up: (credits: string) => `${credits} credits added`,
    adjustment: (credits: string) => `${credits} credits adjusted`
  },
  delivery: (type: string) => `Webhook ${type}`,
  answered: (status: number) => `HTTP ${status}`,
  took: (duration: string) => `after ${duration}`,
  ran: (duration: string) => `took ${duration}`
}
