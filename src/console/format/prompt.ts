/** What a task was asked for, of its body, which is the model's own. */
export const promptOf = (body: unknown): string =>
  typeof body === "object" && body !== null && "prompt" in body && typeof body.prompt === "string"
    ? body.prompt
    : ""
