import { Context, Deferred, Effect, Layer, Option } from "effect"
import type { TaskId } from "../domain/Ids.ts"
import type { StoreUnavailable } from "../domain/Problem.ts"
import { Process } from "../process/Process.ts"
import { TaskStore } from "./TaskStore.ts"
import type { OwnedTask, Standing } from "./TaskStore.ts"

/** Why a run is to stop: its task was ended by somebody else, or is owned by somebody else. */
export type Loss = Exclude<Standing, "Owned">

/**
 * The tasks that this process runs, held against what the store says that it owns. A cancelled task
 * stops soon instead of at the end of its job, and a task whose owning was committed but never
 * answered (a broken connection) does not stay owned by a process that does not run it.
 */
export class RunningTasks extends Context.Service<
  RunningTasks,
  {
    /**
     * Runs while the task is owned. When it no longer is, the run is interrupted at once, save what
     * must not be (a submit that is under way), and the answer tells why.
     */
    readonly whileOwned: <E, R>(
      owned: OwnedTask,
      run: Effect.Effect<void, E, R>
    ) => Effect.Effect<Option.Option<Loss>, E, R>
    /** Looks at once whether the run may go on; `false` when there is none in this process. */
    readonly check: (id: TaskId) => Effect.Effect<boolean, StoreUnavailable>
    /** Stops runs that another process ended or took, and gives back what nobody here runs. */
    readonly audit: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/RunningTasks") {
  static readonly layer = Layer.effect(
    RunningTasks,
    Effect.gen(function* () {
      const process = yield* Process
      const store = yield* TaskStore
      const running = new Map<TaskId, { epoch: number; lost: Deferred.Deferred<Loss> }>()
      /** Owned by the store's word and not run here when last looked: the answer may be on its way. */
      let suspects = new Map<TaskId, number>()

      const look = Effect.fnUntraced(function* (id: TaskId) {
        const run = running.get(id)
        if (run === undefined) return false
        const standing = yield* store.standing(id, run.epoch)
        if (standing !== "Owned") yield* Deferred.succeed(run.lost, standing)
        return true
      })

      return RunningTasks.of({
        check: look,
        whileOwned: (owned, run) =>
          Effect.acquireUseRelease(
            Effect.map(Deferred.make<Loss>(), (lost) => {
              const entry = { epoch: owned.epoch, lost }
              running.set(owned.task.id, entry)
              return entry
            }),
            ({ lost }) =>
              Effect.raceFirst(Effect.as(run, Option.none()), Effect.asSome(Deferred.await(lost))),
            (entry) =>
              Effect.sync(() => {
                if (running.get(owned.task.id) === entry) running.delete(owned.task.id)
              })
          ),
        audit: Effect.gen(function* () {
          const before = [...running.keys()]
          const owned = new Map(
            (yield* store.ownedBy(process.id)).map((run) => [run.taskId, run.epoch])
          )
          for (const id of before) {
            if (owned.get(id) !== running.get(id)?.epoch) yield* look(id)
          }
          const idle = new Map([...owned].filter(([id]) => !running.has(id)))
          for (const [id, epoch] of idle) {
            if (suspects.get(id) === epoch) yield* store.disown(id, epoch)
          }
          suspects = idle
        })
      })
    })
  )
}
