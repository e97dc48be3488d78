import { DateTime, Duration, Effect, Schema } from "effect"
import { AppConfig } from "../../config/Config.ts"
import { TaskOutput } from "../../contract/McpTools.ts"
import { TaskId, taskTimeMillis } from "../../domain/Ids.ts"
import { artifactHours } from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { TaskStatus } from "../../domain/task/Task.ts"
import { cancelledByOwner } from "../../tasks/completion/TaskCompletion.ts"
import { Router } from "../../tasks/creation/Router.ts"
import type { Principal } from "../../users/ApiKeys.ts"
import { RequestQuotas } from "../../users/RequestQuotas.ts"
import type { TaskView } from "../tasks/CreatedTask.ts"
import { rpcCodes, tasksExtension } from "./JsonRpc.ts"
import type { JsonObject, RpcError, RpcRequest } from "./JsonRpc.ts"
import { makeTaskResult } from "./TaskResult.ts"
import { makeFind } from "./TaskTools.ts"
import { resultOfAnswer } from "./Tools.ts"
import { takesTasks } from "./Versions.ts"

export const taskMethods: ReadonlySet<string> = new Set([
  "tasks/get",
  "tasks/update",
  "tasks/cancel"
])

/** The same interval as in `Retry-After`. docs/reference/tasks.md#polling */
const pollIntervalMs = 2000

const isTaskId = Schema.is(TaskId)

/** Whether a request of the extension reads a task, which counts as an inference request. */
export const namesTask = (request: RpcRequest): boolean =>
  taskMethods.has(request.method) && takesTasks(request) && isTaskId(request.params["taskId"])

const encodeOutput = Schema.encodeEffect(TaskOutput)

/**
 * The extension `io.modelcontextprotocol/tasks` (SEP-2663): the result of a long call is a task of the gateway. Any
 * process can return it, even if the one that accepted the call is gone. docs/reference/mcp.md#tasks
 */
export const makeTaskExtension = Effect.gen(function* () {
  const { taskDeadline } = yield* AppConfig
  const find = yield* makeFind
  const quotas = yield* RequestQuotas
  const resultOf = yield* makeTaskResult
  const router = yield* Router
  // Covers the task's deadline and the lifetime of its results
  const ttlMs = Duration.toMillis(Duration.sum(taskDeadline, Duration.hours(artifactHours)))

  const taskOf = (
    id: TaskId,
    status: TaskStatus,
    updatedAt: DateTime.Utc,
    isCancelled = false
  ): JsonObject => ({
    taskId: id,
    status: isCancelled ? "cancelled" : statuses[status],
    createdAt: new Date(taskTimeMillis(id)).toISOString(),
    lastUpdatedAt: DateTime.formatIso(updatedAt),
    ttlMs,
    pollIntervalMs
  })

  const found = Effect.fnUntraced(function* (caller: Principal, request: RpcRequest) {
    const { taskId } = request.params
    if (!takesTasks(request)) return yield* missingCapability
    if (!isTaskId(taskId)) return yield* noTask
    if (!caller.scopes.includes("inference")) {
      yield* quotas.takeManagement(caller.userId)
      return yield* problem(1004, "This API key lacks the scope inference")
    }
    return yield* Effect.catchIf(
      find(taskId),
      (error) => error._tag === "Problem" && error.code === 2005,
      () => noTask
    )
  })

  /** Adds the result of a task that has ended. A failed task is a failed call. */
  const detailOf = Effect.fnUntraced(function* (task: TaskView) {
    const isCancelled = task.error?.code === cancelledByOwner.code
    const shown = taskOf(task.id, task.status, task.updatedAt, isCancelled)
    if (statuses[task.status] === "working" || isCancelled) return shown
    const { content = [], value } = yield* resultOf(task, true)
    const answer = { content, value: yield* Effect.orDie(encodeOutput(value)) }
    // The same result that the call itself would have returned
    const result = { resultType: "complete", ...resultOfAnswer(answer) }
    return { ...shown, result: task.status === "failed" ? { ...result, isError: true } : result }
  })

  const cancel = Effect.fnUntraced(function* (caller: Principal, request: RpcRequest) {
    const { task } = yield* found(caller, request)
    // If the task has ended meanwhile, that is fine: the client only says that it no longer needs it
    yield* Effect.catchIf(
      router.cancel(caller.userId, task, task.id),
      (error) => error._tag === "Problem" && error.code === 2010,
      () => Effect.void
    )
    return {}
  })

  return {
    /** Returned by the call that created the task, instead of a result. */
    handleOf: (id: TaskId, status: TaskStatus, now: DateTime.Utc): JsonObject => ({
      ...taskOf(id, status, now),
      resultType: "task"
    }),
    call: (caller: Principal, request: RpcRequest) => {
      switch (request.method) {
        case "tasks/get":
          return Effect.flatMap(found(caller, request), ({ task }) => detailOf(task))
        case "tasks/cancel":
          return cancel(caller, request)
        // A task never requires input, so there is nothing to update
        case "tasks/update":
          return Effect.as(found(caller, request), {})
        default:
          return undefined
      }
    }
  }
})

const statuses = {
  pending: "working",
  processing: "working",
  completed: "completed",
  failed: "completed"
} as const satisfies Record<TaskStatus, string>

const noTask = Effect.fail<RpcError>({ code: rpcCodes.invalidParams, message: "Unknown task" })

const missingCapability = Effect.fail<RpcError>({
  code: rpcCodes.missingCapability,
  message: `The client does not declare ${tasksExtension}`,
  data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
})
