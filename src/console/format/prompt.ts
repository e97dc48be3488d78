/** What a task was asked for, of its body, which is the model's own. */
export const promptOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "prompt" in body && typeof body.prompt === "string"
    ? body.prompt
    : ""

/** What a task was asked for, on one line; one that keeps no prompt is named by its model. */
export const taskTitle = (task: {
  readonly model: string
  readonly prompt?: string
  readonly vendor: string
}): string => {
  const line = (task.prompt ?? "").replaceAll(/\s+/gu, " ").trim()
  return line === "" ? `${task.vendor}/${task.model}` : line
}
