import { Option, Schema } from "effect"
import { responseIdOf } from "../../domain/Ids.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { responseShownBytesMax } from "../../domain/limits/Limits.ts"
import type { TaskError, TaskStatus } from "../../domain/task/Task.ts"
import type { Response } from "../../tasks/responses/Responses.ts"

/** Members of a request that the vendor repeats, with the values that it shows if the request lacks them. */
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

/** The members of a request that the response shows, without long ones. */
export const shownOf = (request: object): Record<string, Schema.Json> =>
  Object.fromEntries(
    Object.entries(request).flatMap(([name, value]) => {
      if (!Object.hasOwn(repeated, name) || (value ?? null) === null) return []
      const json = Option.getOrUndefined(decodeJson(value))
      if (json === undefined || JSON.stringify(json).length > responseShownBytesMax) return []
      return [[name, json]]
    })
  )

/** What is known of a response before the vendor has finished it. */
export interface ResponseFacts {
  readonly id: TaskId
  readonly model: string
  readonly status: TaskStatus
  readonly createdAtMillis: number
  readonly error: TaskError | null
  readonly shown: Readonly<Record<string, Schema.Json>>
  readonly previous: string | null
}

/** A response in OpenAI's format, for as long as the vendor has no document of it and after a failure. */
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

/** OpenAI's code for a task error. docs/reference/background.md#states */
const codeOf = ({ code }: TaskError): string => {
  if (code === 400 || code === 3001) return "invalid_prompt"
  return code === 3002 ? "rate_limit_exceeded" : "server_error"
}

/** The same facts, read from a stored task. */
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
