import { Context, Deferred, Effect, Layer, Result, Schema } from "effect"
import { TaskId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Hints } from "../process/Hints.ts"
import { makeFiberPlaces } from "../process/Places.ts"
import { Process } from "../process/Process.ts"
import { TaskStore } from "./TaskStore.ts"
import type { OwnedTask, RunState } from "./TaskStore.ts"

/** Why a run has to stop: another process ended its task, or owns it. */
export type StopReason = Exclude<RunState, "Owned">

const isTaskId = Schema.is(TaskId)

/**
 * The tasks that this process has in hand, compared with those that it owns in the store. A step of a
 * cancelled task stops soon; and a task whose claim was committed without a response (a broken
 * connection) does not stay with a process that does not run it. ADR 0020.
 */
export class RunningTasks extends Context.Service<
  RunningTasks,
  {
    /**
     * Runs while the task is owned. When it no longer is, the run is interrupted, except for an
     * uninterruptible part (a submit), and the reason is returned. ADR 0109.
     */
    readonly whileOwned: <A, E, R>(
      owned: OwnedTask,
      run: Effect.Effect<A, E, R>
    ) => Effect.Effect<Result.Result<A, StopReason>, E, R>
    /**
     * Stops the run now if the task is no longer owned; `false`: this
     * process does not run the task.
     */
    readonly check: (id: TaskId) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Stops runs whose task another process ended or acquired, and
     * releases tasks without a run here.
     */
    readonly reconcile: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/RunningTasks") {
  static readonly layer = Layer.effect(
    RunningTasks,
    Effect.gen(function* () {
      const process = yield* Process
      const store = yield* TaskStore
      const running = new Map<TaskId, { epoch: number; stopped: Deferred.Deferred<StopReason> }>()
      /** Owned and without a run at the last reconciliation: the run may be about to start. */
      let withoutRun = new Map<TaskId, number>()

      const check = Effect.fnUntraced(function* (id: TaskId) {
        const run = running.get(id)
        if (run === undefined) return false
        const state = yield* store.runState(id, run.epoch)
        if (state !== "Owned") yield* Deferred.succeed(run.stopped, state)
        return true
      })

      // Another process has ended the task
      const run = yield* makeFiberPlaces
      const hints = yield* Hints
      hints.subscribe("stop", (id) => {
        if (isTaskId(id) && running.has(id)) run(Effect.ignore(check(id)))
      })

      return RunningTasks.of({
        check,
        whileOwned: (owned, run) =>
          Effect.acquireUseRelease(
            Effect.map(Deferred.make<StopReason>(), (stopped) => {
              const entry = { epoch: owned.epoch, stopped }
              running.set(owned.task.id, entry)
              return entry
            }),
            ({ stopped }) =>
              Effect.raceFirst(
                Effect.map(run, Result.succeed),
                Effect.map(Deferred.await(stopped), Result.fail)
              ),
            (entry) =>
              Effect.sync(() => {
                if (running.get(owned.task.id) === entry) running.delete(owned.task.id)
              })
          ),
        reconcile: Effect.gen(function* () {
          // Nothing to compare, and no statement
          if (running.size === 0 && !process.ownedTasks()) return
          const before = [...running.keys()]
          const owned = new Map(
            (yield* store.ownedBy(process.id)).map((run) => [run.taskId, run.epoch])
          )
          for (const id of before) {
            if (owned.get(id) !== running.get(id)?.epoch) yield* check(id)
          }
          const idle = new Map([...owned].filter(([id]) => !running.has(id)))
          for (const [id, epoch] of idle) {
            if (withoutRun.get(id) === epoch) yield* store.releaseRun(id, epoch)
          }
          withoutRun = idle
        })
      })
    })
  )
}
