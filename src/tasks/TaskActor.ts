import { Effect, Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TaskId } from "../domain/Ids.ts"
import { TaskRunner } from "./TaskRunner.ts"

/**
 * There is work for this task. Volatile: a lost one is found by the sweeper. At shutdown it is
 * interrupted at once, so that the next owner starts at once, and nobody waits by a test's clock.
 */
const Run = Rpc.make("Run").annotate(ClusterSchema.InterruptOnTermination, true)

/** The task was cancelled: stop at once. Volatile: one that is lost costs the vendor's work only. */
const Stop = Rpc.make("Stop")

/** One actor per running task: alive from its wake-up until the task has ended. */
export const TaskActor = Entity.make("TaskActor", [Run, Stop])

const decodeTaskId = Schema.decodeUnknownEffect(TaskId)

/**
 * Runs its task to the end; a task that somebody else runs is left alone by `TaskRunner.run`.
 * Messages are taken while it runs, so that `Stop` is heard.
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
