import { Effect, Option } from "effect"
import { Buffer } from "node:buffer"
import { AppConfig } from "../../config/Config.ts"
import type { TaskOutput } from "../../contract/McpTools.ts"
import { taskErrorHelp } from "../../domain/ErrorHelp.ts"
import { mcpImageBytesMax } from "../../domain/limits/ShapeLimits.ts"
import type { TaskError, TaskStatus } from "../../domain/task/Task.ts"
import { TaskResults } from "../../tasks/completion/TaskResults.ts"
import type { ReadRequest } from "../../tasks/completion/TaskResults.ts"
import { costOf } from "../tasks/CreatedTask.ts"
import type { TaskView } from "../tasks/CreatedTask.ts"
import { taskUrl } from "../tasks/TaskProblem.ts"
import type { Answer, Content } from "./Tools.ts"

const nextSteps: Readonly<Record<TaskStatus, string>> = {
  pending: "Call get_task with wait_seconds until the status is completed or failed",
  processing: "Call get_task with wait_seconds until the status is completed or failed",
  completed: "The results are available. Their links are valid for 24 hours: keep a copy",
  failed: "Nothing was charged. To try again, call create_task with a new idempotency_key"
}

export const nextOf = (status: TaskStatus): string => nextSteps[status]

const helps: Readonly<Record<number, { readonly meaning: string; readonly remedy: string }>> =
  taskErrorHelp

const errorOf = (error: TaskError) => ({
  ...error,
  meaning: helps[error.code]?.meaning ?? null,
  remedy: helps[error.code]?.remedy ?? null
})

/** One result: its link, and the image itself if it was requested and is small. */
interface Shown {
  readonly view: (typeof TaskOutput.Type)["results"][number]
  readonly content: ReadonlyArray<Content>
}

/** The result of a task as the tools return it. docs/reference/mcp.md#results */
export const makeTaskResult = Effect.gen(function* () {
  const { baseUrl } = yield* AppConfig
  const results = yield* TaskResults

  /**
   * Opens a result. A result that can no longer be read is still returned as a link, because the request was for the
   * task.
   */
  const openOf = (url: string) =>
    Effect.map(Effect.option(results.open(url)), (found) =>
      Option.getOrUndefined(Option.flatten(found))
    )

  const pictureOf = (url: string, mime: string, request: ReadRequest) =>
    Effect.map(Effect.option(results.read(url, request)), (found) =>
      Option.toArray(found).map(({ bytes }): Content => ({
        type: "image",
        data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64"),
        mimeType: mime
      }))
    )

  const show = Effect.fnUntraced(function* (url: string, name: string, request: ReadRequest) {
    const opened = yield* openOf(url)
    const link: Content = {
      type: "resource_link",
      uri: url,
      name,
      ...(opened === undefined ? {} : { mimeType: opened.mime, size: opened.size })
    }
    const isSmall = opened?.mime.startsWith("image/") === true && opened.size <= request.bytesMax
    const pictures = isSmall ? yield* pictureOf(url, opened.mime, request) : []
    const view = {
      url,
      media_type: opened?.mime ?? null,
      size: opened?.size ?? null,
      shown: pictures.length > 0
    }
    return { view, content: [link, ...pictures] } satisfies Shown
  })

  return Effect.fnUntraced(function* (task: TaskView, withImages: boolean) {
    const shown: Array<Shown> = []
    let left = withImages ? mcpImageBytesMax : 0
    for (const [index, url] of (task.status === "completed" ? (task.result ?? []) : []).entries()) {
      const name = `${task.resultKind} ${index + 1} of task ${task.id}`
      const one = yield* show(url, name, { bytesMax: left, caller: task.userId })
      if (one.view.shown) left -= one.view.size ?? 0
      shown.push(one)
    }
    const value: typeof TaskOutput.Type = {
      task_id: task.id,
      model: `${task.vendor}/${task.model}`,
      action: task.action,
      status: task.status,
      cost: costOf(task),
      sandbox: task.sandbox,
      url: taskUrl(baseUrl, task, task.id),
      next: nextOf(task.status),
      created_at: task.createdAt,
      updated_at: task.updatedAt,
      error: task.error === null ? null : errorOf(task.error),
      results: shown.map(({ view }) => view),
      ...(task.metadata === null ? {} : { metadata: task.metadata })
    }
    return { value, content: shown.flatMap(({ content }) => content) } satisfies Answer<
      typeof value
    >
  })
})
