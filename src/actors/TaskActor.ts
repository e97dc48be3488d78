import { Effect, Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TaskId } from "../domain/Ids.ts"
import { TaskRunner } from "../services/TaskRunner.ts"

/** There is work for this task. Volatile: a lost one is found by the sweeper. */
const Run = Rpc.make("Run")

/** One actor per running task: alive from its wake-up until the task has ended. */
export const TaskActor = Entity.make("TaskActor", [Run])

const decodeTaskId = Schema.decodeUnknownEffect(TaskId)

/** Runs its task to the end; a task that somebody else runs is left alone by `TaskRunner.run`. */
export const layer = TaskActor.toLayer(
  Effect.gen(function* () {
    const runner = yield* TaskRunner
    const { entityId } = yield* Entity.CurrentAddress
    const run = decodeTaskId(entityId).pipe(
      Effect.flatMap(runner.run),
      Effect.catchCause((cause) => Effect.logWarning(`The actor of task ${entityId} failed`, cause))
    )
    return TaskActor.of({ Run: () => run })
  }),
  { maxIdleTime: "5 seconds", mailboxCapacity: 16 }
)
