/** The prompt in a task's body, whose other fields depend on the model. */
export const promptOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "prompt" in body && typeof body.prompt === "string"
    ? body.prompt
    : ""

/** The task's prompt on one line or, if it is not stored, the name of its model. */
export const taskTitle = (task: {
  readonly model: string
  readonly prompt?: string
  readonly vendor: string
}): string => {
  const line = (task.prompt ?? "").replaceAll(/\s+/gu, " ").trim()
  return line === "" ? `${task.vendor}/${task.model}` : line
}
