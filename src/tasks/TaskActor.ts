import { Effect, Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TaskId } from "../domain/Ids.ts"
import { TaskRunner } from "./TaskRunner.ts"

/**
 * The task has to run. Volatile: the `Rescuer` finds the task of a lost message. At shutdown it is
 * interrupted at once, so that the next owner starts at once and no wait depends on the clock.
 */
const Run = Rpc.make("Run").annotate(ClusterSchema.InterruptOnTermination, true)

/** The task was cancelled: stop at once. Volatile: after a lost message the job runs on at the vendor. */
const Stop = Rpc.make("Stop")

/** One actor for each running task, from its first message until the task has ended. */
export const TaskActor = Entity.make("TaskActor", [Run, Stop])

const decodeTaskId = Schema.decodeUnknownEffect(TaskId)

/**
 * Runs its task to the end; `TaskRunner.run` does nothing for a task that another process owns. Messages
 * are handled concurrently, so that `Stop` arrives while the task runs.
 */
export const layer = TaskActor.toLayer(
  Effect.gen(function* () {
    const runner = yield* TaskRunner
    const { entityId } = yield* Entity.CurrentAddress
    const taskId = yield* Effect.orDie(decodeTaskId(entityId))
    const guarded = Effect.catchCause((cause) =>
      Effect.logWarning(`The actor of task ${entityId} failed`, cause)
    )
    return TaskActor.of({
      Run: () => guarded(runner.run(taskId)),
      Stop: () => guarded(runner.stop(taskId))
    })
  }),
  { maxIdleTime: "5 seconds", mailboxCapacity: 16, concurrency: "unbounded" }
)
