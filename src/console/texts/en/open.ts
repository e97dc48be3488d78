/** Texts of the palette and of what it found. They load with either. */
export const openTexts = {
  help: "A page, a model, words of a prompt, or any id: task, call, trace, delivery",
  operatorHelp: "A page, a model, a user, or any id: task, call, trace, key, delivery",
  nothing: (id: string) => `No task, call or delivery of yours has the id ${id}`,
  nothingAtAll: (id: string) => `No user, task, call or delivery matches ${id}`,
  byId: (id: string) => `Open ${id}`,
  tasksWith: (text: string) => `Search tasks for “${text}”`,
  usersWith: (text: string) => `Search users for “${text}”`,
  noMatch: "No page or model has this name",
  results: "Results",
  found: "Found",
  types: {
    user: "User",
    task: "Task",
    call: "Call",
    api_key: "API key",
    session: "Session",
    task_batch: "Batch",
    webhook_endpoint: "Endpoint",
    webhook_delivery: "Delivery",
    event: "Event"
  }
}
