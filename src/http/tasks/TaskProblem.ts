import { Option } from "effect"
import { modelPath } from "../../catalog/CatalogContent.ts"
import { responseIdOf } from "../../domain/Ids.ts"
import type { TaskId } from "../../domain/Ids.ts"
import { Problem } from "../../domain/Problem.ts"
import type { TaskError } from "../../domain/task/Task.ts"
import type { ModelPath } from "../../tasks/creation/TaskAcceptance.ts"
import type { TaskView } from "./CreatedTask.ts"

/** The URL at which a task can be read. */
export const taskUrl = (baseUrl: string, path: ModelPath, id: TaskId): string =>
  path.action === "responses"
    ? `${baseUrl}/v1/responses/${responseIdOf(id)}`
    : `${baseUrl}${modelPath(path)}/${id}`

/** Codes of task errors that the client can correct. docs/reference/errors.md#task-error-codes */
const ofTheRequest = new Set([400, 3001, 4002])

/**
 * The problem for a task that exists but has no result. It must not make a client repeat the request, which would buy
 * another task. docs/reference/shapes.md#waiting-for-a-task
 */
export const taskProblem = (id: TaskId, url: string, task: Option.Option<TaskView>): Problem => {
  const seen = Option.getOrUndefined(task)
  const error = seen?.error ?? undefined
  const status = seen?.status ?? "pending"
  if (error !== undefined) {
    return new Problem({
      code: ofTheRequest.has(error.code) ? 2018 : 2019,
      detail: wordsOf(error),
      task: { id, url, status, error }
    })
  }
  return new Problem({
    code: 2017,
    detail:
      status === "completed"
        ? `The result of the task could not be read now: GET ${url}`
        : `The task is still running: GET ${url}`,
    task: { id, url, status }
  })
}

const wordsOf = ({ code, detail, title }: TaskError): string => `${title} (${code}): ${detail}`
