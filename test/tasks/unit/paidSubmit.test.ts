import { assert, describe, it } from "@effect/vitest"
import { DateTime, Deferred, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { AppConfig } from "../../../src/config/Config.ts"
import { UserId } from "../../../src/domain/Ids.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { Callbacks } from "../../../src/tasks/callbacks/Callbacks.ts"
import { TaskOutput } from "../../../src/tasks/completion/TaskOutput.ts"
import { ConcurrencyLimiter } from "../../../src/tasks/submission/ConcurrencyLimiter.ts"
import { PaidSubmit } from "../../../src/tasks/submission/PaidSubmit.ts"
import { PollPacing } from "../../../src/tasks/submission/PollPacing.ts"
import { TaskChanges } from "../../../src/tasks/TaskChanges.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { AttemptOutcome } from "../../../src/tasks/TaskStore.ts"
import type { SubmitMedium, Submitted, VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { VendorError } from "../../../src/vendors/VendorError.ts"
import { ownedEntry as entry, ownedTask as owned } from "../../support/owned.ts"

const stubsOf = (store: Partial<TaskStore["Service"]>) =>
  Layer.mergeAll(
    Layer.mock(TaskStore, store),
    Layer.mock(TaskOutput, {}),
    Layer.mock(Callbacks, { isOn: false, callbackUrl: () => undefined }),
    Layer.mock(ConcurrencyLimiter, { notifyReleased: Effect.void, queues: Effect.succeed([]) }),
    Layer.mock(PollPacing, {
      first: ({ after }) => Effect.map(DateTime.now, (now) => DateTime.addDuration(now, after)),
      ended: () => {}
    }),
    Drain.layer,
    TaskChanges.layer,
    Layer.orDie(AppConfig.layerOf({}))
  )

const accepted: Submitted = {
  _tag: "Accepted",
  handle: { id: "job" },
  pollAfter: Duration.seconds(1)
}

/** A store in which the test decides how an attempt begins; records what happened meanwhile. */
const bench = Effect.gen(function* () {
  const begins: Array<Deferred.Deferred<boolean, StoreUnavailable>> = []
  const ended: Array<AttemptOutcome["state"] | undefined> = []
  let submits = 0
  const account: VendorAccount = {
    accountId: "a",
    submit: () =>
      Effect.sync(() => {
        submits += 1
        return accepted
      }),
    poll: () => Effect.die("not asked"),
    cancel: () => Effect.succeed("Unsupported")
  }
  const stubs = stubsOf({
    beginAttempt: () =>
      Effect.suspend(() => {
        const answer = Deferred.makeUnsafe<boolean, StoreUnavailable>()
        begins.push(answer)
        return Deferred.await(answer)
      }),
    endStep: ({ attempt }) =>
      Effect.sync(() => {
        ended.push(attempt?.state)
        return true
      })
  })
  const paid = yield* Effect.provide(PaidSubmit, PaidSubmit.layer.pipe(Layer.provide(stubs)))
  const submission = { owned, entry, account, media: [], inputs: {}, n: 1 }
  const fiber = yield* Effect.forkChild(paid.submit(submission))
  yield* TestClock.adjust(0)
  return { fiber, begins, ended, submits: Effect.sync(() => submits) }
})

describe("a run whose submit begins", () => {
  it.effect(
    "records the outcome of an attempt that has begun, even if it is interrupted (shutdown, shard move)",
    () =>
      Effect.gen(function* () {
        const { begins, ended, fiber, submits } = yield* bench
        const interrupted = yield* Effect.forkChild(Fiber.interrupt(fiber))
        yield* TestClock.adjust(0)
        // It was committed, and its response was on its way
        yield* Deferred.succeed(begins[0]!, true)
        yield* Fiber.join(interrupted)
        assert.strictEqual(yield* submits, 1)
        assert.deepStrictEqual(ended, ["submitted"])
      })
  )

  it.effect("does not wait for an unavailable store when it is interrupted", () =>
    Effect.gen(function* () {
      const { begins, ended, fiber, submits } = yield* bench
      yield* Deferred.fail(begins[0]!, new StoreUnavailable({ cause: "away" }))
      yield* TestClock.adjust("100 millis")
      yield* Deferred.fail(begins[1]!, new StoreUnavailable({ cause: "away" }))
      yield* TestClock.adjust(0)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(begins.length, 2)
      assert.strictEqual(yield* submits, 0)
      assert.deepStrictEqual(ended, [])
    })
  )

  it.effect("begins again when the store is back, if it is not interrupted", () =>
    Effect.gen(function* () {
      const { begins, ended, fiber } = yield* bench
      yield* Deferred.fail(begins[0]!, new StoreUnavailable({ cause: "away" }))
      yield* TestClock.adjust("100 millis")
      yield* Deferred.succeed(begins[1]!, true)
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "Accepted")
      assert.deepStrictEqual(ended, ["submitted"])
    })
  )
})

describe("a submit that gives up its slot", () => {
  it.effect.each(["AMBIGUOUS", "FATAL_CLIENT"] as const)("announces it: %s", (failure) =>
    Effect.gen(function* () {
      let announced = 0
      const notifyReleased = Effect.sync(() => {
        announced += 1
      })
      const stubs = Layer.merge(
        stubsOf({ beginAttempt: () => Effect.succeed(true), endStep: () => Effect.succeed(true) }),
        Layer.mock(ConcurrencyLimiter, { notifyReleased, queues: Effect.succeed([]) })
      )
      const paid = yield* Effect.provide(PaidSubmit, PaidSubmit.layer.pipe(Layer.provide(stubs)))
      const account: VendorAccount = {
        accountId: "a",
        submit: () => Effect.fail(new VendorError({ class: failure, message: "no" })),
        poll: () => Effect.die("not asked"),
        cancel: () => Effect.succeed("Unsupported")
      }
      yield* Effect.exit(paid.submit({ owned, entry, account, media: [], inputs: {}, n: 1 }))
      assert.strictEqual(announced, 1)
    })
  )
})

const users = {
  first: UserId.make("019a0000-0000-7000-8000-000000000011"),
  second: UserId.make("019a0000-0000-7000-8000-000000000012"),
  third: UserId.make("019a0000-0000-7000-8000-000000000013")
}
const ownedBy = (name: keyof typeof users) => ({
  ...owned,
  task: { ...owned.task, userId: users[name] }
})

describe("the media of submits under way", () => {
  it.effect(
    "share 256 MiB, half of it for each user; others wait, and one task with more runs alone",
    () =>
      Effect.gen(function* () {
        const begun: Array<number> = []
        const answers = new Map<number, Deferred.Deferred<Submitted>>()
        const stubs = stubsOf({
          beginAttempt: ({ n }) =>
            Effect.as(
              Effect.sync(() => begun.push(n)),
              true
            ),
          endStep: () => Effect.succeed(true)
        })
        const paid = yield* Effect.provide(PaidSubmit, PaidSubmit.layer.pipe(Layer.provide(stubs)))
        /** A task with its attempt number and one medium of this many MiB. */
        const buy = Effect.fnUntraced(function* (
          n: number,
          mebibytes: number,
          name: keyof typeof users
        ) {
          const answer = yield* Deferred.make<Submitted>()
          answers.set(n, answer)
          const account: VendorAccount = {
            accountId: "a",
            submit: () => Deferred.await(answer),
            poll: () => Effect.die("not asked"),
            cancel: () => Effect.succeed("Unsupported")
          }
          const medium: SubmitMedium = {
            pointer: "#/images/0",
            mime: "image/png",
            size: mebibytes * 1024 * 1024,
            artifactUrl: "https://gateway.example.com/artifacts/1",
            bytes: Effect.die("not read")
          }
          yield* Effect.forkChild(
            paid.submit({ owned: ownedBy(name), entry, account, media: [medium], inputs: {}, n })
          )
          yield* TestClock.adjust(0)
        })
        const answer = (n: number) =>
          Effect.andThen(Deferred.succeed(answers.get(n)!, accepted), TestClock.adjust(0))

        yield* buy(1, 100, "first")
        yield* buy(2, 20, "first")
        yield* buy(3, 100, "first")
        assert.deepStrictEqual(begun, [1, 2])
        yield* buy(4, 100, "second")
        assert.deepStrictEqual(begun, [1, 2, 4])
        yield* answer(1)
        assert.deepStrictEqual(begun, [1, 2, 4])
        yield* answer(4)
        assert.deepStrictEqual(begun, [1, 2, 4, 3])
        yield* buy(5, 900, "second")
        yield* buy(6, 1, "third")
        assert.deepStrictEqual(begun, [1, 2, 4, 3])
        yield* answer(2)
        yield* answer(3)
        assert.deepStrictEqual(begun, [1, 2, 4, 3, 5])
        yield* answer(5)
        assert.deepStrictEqual(begun, [1, 2, 4, 3, 5, 6])
        // A running submit cannot be interrupted
        yield* answer(6)
      })
  )
})
