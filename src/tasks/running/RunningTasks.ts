import { Context, Effect, Exit, Layer, Schema } from "effect"
import type { Fiber } from "effect"
import type { TaskRow } from "../../db/TaskRow.ts"
import { TaskId } from "../../domain/Ids.ts"
import type { StoreUnavailable } from "../../domain/Problem.ts"
import { Drain } from "../../process/Drain.ts"
import { Process } from "../../process/heartbeat/Process.ts"
import { Hints } from "../../process/signals/Hints.ts"
import { makeFiberSlots } from "../../process/SlotArray.ts"
import { TaskStore } from "../TaskStore.ts"
import type { OwnedTask } from "./OwnedTask.ts"

interface Run {
  readonly epoch: number
  /** Another process has ended the task or now owns it. */
  isLost: boolean
  /**
   * Cleared when the step ends: the map's discarded tables keep runs reachable, and so would keep the fiber alive.
   * ADR 0149.
   */
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

const interrupt = ({ fiber }: Run): void => fiber?.interruptUnsafe()

const isTaskId = Schema.is(TaskId)

/**
 * The tasks that this process has in hand, compared with those that the store says it owns. The comparison stops the
 * step of a cancelled task soon. It also releases a task whose claim was committed but whose response was lost (a
 * broken connection), which no process would run otherwise. ADR 0020.
 */
export class RunningTasks extends Context.Service<
  RunningTasks,
  {
    /**
     * Runs a step while the task is owned and this process is not draining. When either changes, the fiber is
     * interrupted (except in an uninterruptible part, the submit), and `release` runs if the task is still owned.
     * ADR 0149.
     */
    readonly whileOwned: <E, R, R2>(
      owned: Pick<OwnedTask, "epoch"> & { readonly task: Pick<TaskRow, "id"> },
      step: Effect.Effect<void, E, R>,
      release: Effect.Effect<void, never, R2>
    ) => Effect.Effect<void, E, R | R2>
    /** Stops the run now if the task is no longer owned. `false`: this process does not run the task. */
    readonly check: (id: TaskId) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Stops runs whose tasks have been ended or taken by another process, and releases owned tasks that have no run
     * here.
     */
    readonly reconcile: Effect.Effect<void, StoreUnavailable>
  }
>()("gateway/tasks/RunningTasks") {
  static readonly layer = Layer.effect(
    RunningTasks,
    Effect.gen(function* () {
      const process = yield* Process
      const store = yield* TaskStore
      const drain = yield* Drain
      const running = new Map<TaskId, Run>()
      /**
       * Tasks that were owned without a run at the last reconciliation. They are released only at the second round,
       * because a run may be about to start.
       */
      let withoutRun = new Map<TaskId, number>()

      const check = Effect.fnUntraced(function* (id: TaskId) {
        const run = running.get(id)
        if (run === undefined) return false
        const state = yield* store.runState(id, run.epoch)
        if (state !== "Owned") {
          run.isLost = true
          interrupt(run)
        }
        return true
      })

      yield* drain.begun.pipe(
        Effect.andThen(Effect.sync(() => running.forEach(interrupt))),
        Effect.forkScoped
      )

      // Another process has ended the task
      const run = yield* makeFiberSlots()
      const hints = yield* Hints
      hints.subscribe("stop", (id) => {
        if (isTaskId(id) && running.has(id)) run(Effect.ignore(check(id)))
      })

      return RunningTasks.of({
        check,
        whileOwned: ({ epoch, task }, step, release) =>
          Effect.withFiber((fiber) => {
            if (drain.isDraining()) return release
            const entry: Run = { epoch, isLost: false, fiber }
            running.set(task.id, entry)
            return Effect.onExit(step, (exit) => {
              entry.fiber = undefined
              if (running.get(task.id) === entry) running.delete(task.id)
              return Exit.hasInterrupts(exit) && !entry.isLost ? release : Effect.void
            })
          }),
        reconcile: Effect.gen(function* () {
          // Nothing to compare, so no statement is needed
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
