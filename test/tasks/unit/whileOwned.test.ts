import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TaskId } from "../../../src/domain/Ids.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { RunningTasks } from "../../../src/tasks/running/RunningTasks.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { RunState } from "../../../src/tasks/TaskStore.ts"
import { mockProcess } from "../../support/mockProcess.ts"

const id = TaskId.make("019a0000-0000-7000-8000-000000000001")
const owned = { epoch: 3, task: { id } }

/** A step that never ends, for a task in this state; `ends` receives its outcome. */
const stepOf = <A, E>(
  state: RunState,
  body: (context: {
    readonly drain: Drain["Service"]
    readonly running: RunningTasks["Service"]
    readonly ends: Array<string>
    readonly take: (step: Effect.Effect<void>) => Effect.Effect<void>
  }) => Effect.Effect<A, E>
) =>
  Effect.gen(function* () {
    const drain = yield* Drain
    const running = yield* RunningTasks
    const ends: Array<string> = []
    const release = Effect.sync(() => void ends.push("released"))
    return yield* body({
      drain,
      running,
      ends,
      take: (step) => running.whileOwned(owned, step, release)
    })
  }).pipe(
    Effect.provide(
      RunningTasks.layer.pipe(
        Layer.provideMerge(
          Layer.mergeAll(
            Drain.layer,
            mockProcess(),
            Layer.mock(TaskStore, { runState: () => Effect.succeed(state) })
          )
        )
      )
    )
  )

describe("a step of a task", () => {
  it.effect("is interrupted and released when the drain begins, and none starts afterwards", () =>
    stepOf("Owned", ({ drain, ends, take }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(take(Effect.never))
        yield* Effect.yieldNow
        assert.deepStrictEqual(ends, [])
        yield* drain.begin
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.deepStrictEqual(ends, ["released"])
        yield* take(Effect.sync(() => void ends.push("started")))
        assert.deepStrictEqual(ends, ["released", "released"])
      })
    )
  )

  it.effect("completes its uninterruptible part before it is interrupted", () =>
    stepOf("Owned", ({ drain, ends, take }) =>
      Effect.gen(function* () {
        const response = yield* Deferred.make<void>()
        const submit = Deferred.await(response).pipe(
          Effect.andThen(Effect.sync(() => void ends.push("recorded"))),
          Effect.uninterruptible
        )
        const fiber = yield* Effect.forkChild(
          take(
            Effect.andThen(
              submit,
              Effect.sync(() => void ends.push("polled"))
            )
          )
        )
        yield* Effect.yieldNow
        yield* drain.begin
        yield* Effect.yieldNow
        assert.deepStrictEqual(ends, [])
        yield* Deferred.succeed(response, undefined)
        yield* Fiber.await(fiber)
        assert.deepStrictEqual(ends, ["recorded", "released"])
      })
    )
  )

  it.effect("releases nothing when it ends by itself or fails", () =>
    stepOf("Owned", ({ ends, running, take }) =>
      Effect.gen(function* () {
        yield* take(Effect.sync(() => void ends.push("ended")))
        assert.deepStrictEqual(ends, ["ended"])
        const failed = running.whileOwned(owned, Effect.fail("refused"), Effect.die("released"))
        assert.strictEqual(yield* Effect.flip(failed), "refused")
        assert.isFalse(yield* running.check(id))
      })
    )
  )

  for (const state of ["Ended", "Taken"] as const) {
    it.effect(`is interrupted and not released when its task is ${state.toLowerCase()}`, () =>
      stepOf(state, ({ ends, running, take }) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(take(Effect.never))
          yield* Effect.yieldNow
          assert.isTrue(yield* running.check(id))
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
          assert.deepStrictEqual(ends, [])
        })
      )
    )
  }

  it.effect("continues while its task is owned", () =>
    stepOf("Owned", ({ running, take }) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(take(Effect.never))
        yield* Effect.yieldNow
        assert.isTrue(yield* running.check(id))
        yield* Effect.yieldNow
        assert.isUndefined(fiber.pollUnsafe())
        yield* Fiber.interrupt(fiber)
      })
    )
  )
})
