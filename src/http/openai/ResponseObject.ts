import { Option, Schema } from "effect"
import { responseIdOf } from "../../domain/Ids.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { responseShownBytesMax } from "../../domain/limits/Limits.ts"
import type { TaskError, TaskStatus } from "../../domain/task/Task.ts"
import type { Response } from "../../tasks/responses/Responses.ts"

/** What the vendor repeats of a request, with the value that it shows where the request has none. */
const repeated = {
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "auto",
  store: true,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null
} as const

const decodeJson = Schema.decodeUnknownOption(Schema.Json)

/** The members of a request that a response shows, except long ones. */
export const shownOf = (request: object): Record<string, Schema.Json> =>
  Object.fromEntries(
    Object.entries(request).flatMap(([name, value]) => {
      if (!Object.hasOwn(repeated, name) || (value ?? null) === null) return []
      const json = Option.getOrUndefined(decodeJson(value))
      if (json === undefined || JSON.stringify(json).length > responseShownBytesMax) return []
      return [[name, json]]
    })
  )

/** What is known of a response that its vendor has not finished. */
export interface ResponseFacts {
  readonly id: TaskId
  readonly model: string
  readonly status: TaskStatus
  readonly createdAtMillis: number
  readonly error: TaskError | null
  readonly shown: Readonly<Record<string, Schema.Json>>
  readonly previous: string | null
}

/** A response as OpenAI shows it before its vendor has a document of it, and after a failure. */
export const responseOf = (facts: ResponseFacts) => {
  const { createdAtMillis, error, id, model, previous, shown, status } = facts
  const isCancelled = error?.code === cancelled
  return {
    id: responseIdOf(id),
    object: "response",
    created_at: Math.floor(createdAtMillis / 1000),
    status: isCancelled ? "cancelled" : statuses[status],
    background: true,
    completed_at: null,
    error: error === null || isCancelled ? null : { code: codeOf(error), message: error.detail },
    incomplete_details: null,
    ...repeated,
    ...shown,
    model,
    output: [],
    previous_response_id: previous,
    usage: null
  }
}

const cancelled = 4004

const statuses = {
  pending: "queued",
  processing: "in_progress",
  completed: "completed",
  failed: "failed"
} as const satisfies Record<TaskStatus, string>

/** OpenAI's codes. docs/reference/background.md#states */
const codeOf = ({ code }: TaskError): string => {
  if (code === 400 || code === 3001) return "invalid_prompt"
  return code === 3002 ? "rate_limit_exceeded" : "server_error"
}

/** The same of a stored task. */
export const factsOf = ({ body, task }: Response): ResponseFacts => {
  const request = Option.getOrUndefined(body)
  return {
    id: task.id,
    model: task.model,
    status: task.status,
    createdAtMillis: task.createdAt.epochMilliseconds,
    error: task.error,
    shown: request?.shown ?? {},
    previous: request?.previous?.id ?? null
  }
}
