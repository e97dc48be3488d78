import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Duration, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { AccountKeys } from "../../../src/process/accounts/AccountKeys.ts"
import { CatalogVersions } from "../../../src/process/catalogs/CatalogVersions.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { WorkNotifier } from "../../../src/process/signals/WorkNotifier.ts"
import { TaskCompletion } from "../../../src/tasks/completion/TaskCompletion.ts"
import { TaskOutput } from "../../../src/tasks/completion/TaskOutput.ts"
import { RunningTasks } from "../../../src/tasks/running/RunningTasks.ts"
import { TaskInbox } from "../../../src/tasks/running/TaskInbox.ts"
import { TaskMedia } from "../../../src/tasks/running/TaskMedia.ts"
import { TaskRunner } from "../../../src/tasks/running/TaskRunner.ts"
import { ConcurrencyLimiter } from "../../../src/tasks/submission/ConcurrencyLimiter.ts"
import { OperatorFaults } from "../../../src/tasks/submission/OperatorFaults.ts"
import { PaidSubmit } from "../../../src/tasks/submission/PaidSubmit.ts"
import { PollPacing } from "../../../src/tasks/submission/PollPacing.ts"
import { Reconcile } from "../../../src/tasks/submission/Reconcile.ts"
import { VendorAttemptStore } from "../../../src/tasks/submission/VendorAttemptStore.ts"
import { VendorWork } from "../../../src/tasks/submission/VendorWork.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import { BatchOutput } from "../../../src/tasks/vendorbatches/BatchOutput.ts"
import { VendorBatchStore } from "../../../src/tasks/vendorbatches/VendorBatchStore.ts"
import { VendorClient } from "../../../src/vendors/VendorClient.ts"
import type { VendorAccount } from "../../../src/vendors/VendorClient.ts"
import { ownedEntry as entry, ownedTask } from "../../support/owned.ts"

const epoch = DateTime.makeUnsafe(0)

/** It waited for a slot of account `a` and got one. */
const woken = { ...ownedTask, epoch: 3, accountId: "a", slotHeld: true }

const accountOf = (accountId: string, isDraining: boolean): VendorAccount => ({
  accountId,
  submit: () => Effect.die("not asked"),
  poll: () => Effect.die("not asked"),
  cancel: () => Effect.succeed("Unsupported"),
  slotsOf: () => ({ line: accountId, max: 1 }),
  isDraining: () => isDraining
})

/** Takes the task's next step and returns what it did. `other` is chosen for new jobs. */
const stepOf = Effect.fnUntraced(function* (
  own: VendorAccount,
  other: VendorAccount,
  slot: "Held" | "Waits"
) {
  const did: Array<string> = []
  const stubs = Layer.mergeAll(
    Layer.mock(CatalogVersions, {
      current: () => ({}) as never,
      withId: () => Effect.succeedSome({ taskModel: () => Option.some(entry) } as never)
    }),
    Layer.mock(AccountKeys, { ownerOf: () => Effect.die("not asked") }),
    Layer.mock(TaskStore, {}),
    TaskInbox.layer,
    Layer.mock(Reconcile, {}),
    Layer.mock(VendorBatchStore, {}),
    Layer.mock(VendorBatchStore, {}),
    Layer.mock(PollPacing, { ended: () => {} }),
    Layer.mock(OperatorFaults, { clear: () => Effect.void, hasOpen: () => false }),
    Layer.mock(TaskMedia, { resolve: () => Effect.succeed({ media: [], inputs: {} }) }),
    Layer.mock(ConcurrencyLimiter, {
      notifyReleased: Effect.void,
      serve: Effect.succeed(false),
      queues: Effect.succeed([]),
      take: (_request, { line }) => Effect.sync(() => (did.push(`slot of ${line}`), slot))
    }),
    Layer.mock(VendorAttemptStore, { restoredAt: Effect.succeedNone }),
    Layer.mock(PaidSubmit, {
      submit: ({ account }) =>
        Effect.sync(() => {
          did.push(`submit to ${account.accountId}`)
          return { _tag: "Accepted" as const, until: epoch }
        })
    }),
    Layer.mock(VendorClient, {
      isSandbox: () => false,
      isServed: () => true,
      accountsFor: () => [],
      choose: () => Effect.succeed(other),
      owner: (id) => Effect.succeed(id === own.accountId ? own : other)
    })
  )
  const { next } = yield* Effect.provide(VendorWork, VendorWork.layer.pipe(Layer.provide(stubs)))
  yield* next(woken)
  return did
})

/** docs/reference/vendors.md#draining-an-account */
describe("a task that has waited for a slot of an account", () => {
  it.effect("is submitted there", () =>
    Effect.gen(function* () {
      const did = yield* stepOf(accountOf("a", false), accountOf("b", false), "Held")
      assert.deepStrictEqual(did, ["submit to a"])
    })
  )

  it.effect("goes to another account when that one drains, and needs a slot there", () =>
    Effect.gen(function* () {
      const did = yield* stepOf(accountOf("a", true), accountOf("b", false), "Held")
      assert.deepStrictEqual(did, ["slot of b", "submit to b"])
      const waits = yield* stepOf(accountOf("a", true), accountOf("b", false), "Waits")
      assert.deepStrictEqual(waits, ["slot of b"])
    })
  )

  it.effect("is still submitted there if no other account has the model", () =>
    Effect.gen(function* () {
      const only = accountOf("a", true)
      assert.deepStrictEqual(yield* stepOf(only, only, "Held"), ["submit to a"])
    })
  )
})

const job = { accountId: "a", handle: { job: "j" } }
const away = Effect.fail(new StoreUnavailable({ cause: "test" }))

/** Work at account `a`, with the test's store and inbox. */
const workAt = (
  account: Partial<VendorAccount>,
  store: Partial<TaskStore["Service"]>,
  withId: CatalogVersions["Service"]["withId"] = () =>
    Effect.succeedSome({ taskModel: () => Option.some(entry) } as never)
) =>
  Effect.gen(function* () {
    const woken: Array<number | undefined> = []
    const own = { ...accountOf("a", false), ...account }
    const stubs = Layer.mergeAll(
      Layer.mock(CatalogVersions, { current: () => ({}) as never, withId }),
      Layer.mock(AccountKeys, { ownerOf: () => Effect.succeed(own) }),
      Layer.mock(TaskStore, store),
      Layer.mock(TaskInbox, {
        start: () => {},
        stop: () => {},
        wake: (at) => void woken.push(at),
        attach: () => {},
        capacity: () => 1,
        count: () => {},
        admits: () => true,
        setBehind: () => {}
      }),
      Layer.mock(Reconcile, {}),
      Layer.mock(VendorBatchStore, {}),
      Layer.mock(PollPacing, {
        ended: () => {},
        next: ({ after }) => Effect.map(DateTime.now, DateTime.addDuration(after))
      }),
      Layer.mock(OperatorFaults, { clear: () => Effect.void, hasOpen: () => false }),
      Layer.mock(TaskMedia, {}),
      Layer.mock(ConcurrencyLimiter, {
        notifyReleased: Effect.void,
        serve: Effect.succeed(false),
        queues: Effect.succeed([])
      }),
      Layer.mock(VendorAttemptStore, { restoredAt: Effect.succeedNone }),
      Layer.mock(PaidSubmit, {}),
      Layer.mock(VendorClient, {
        isSandbox: () => false,
        isServed: () => true,
        accountsFor: () => []
      })
    )
    const context = yield* Layer.build(Layer.provide(VendorWork.layer, stubs))
    return { work: Context.get(context, VendorWork), woken }
  })

/** docs/reference/vendors.md#poll-interval */
describe("a poll of a running job", () => {
  it.effect("is due for the scheduler once it is written, however long that takes", () =>
    Effect.gen(function* () {
      let written = () => {}
      const { woken: wakes, work } = yield* workAt(
        { poll: () => Effect.succeed({ _tag: "Running", pollAfter: Duration.millis(10) }) },
        {
          endPoll: (_end, then) =>
            Effect.sync(() => {
              written = then
            })
        }
      )
      const { deadlineAt, queue, startsAt, task } = woken
      const job = { accountId: "a", handle: { job: "j" } }
      yield* work.next({ task, epoch: 3, deadlineAt, queue, startsAt, job })
      wakes.length = 0
      // An earlier scan saw a task in hand
      yield* TestClock.adjust("1 second")
      written()
      assert.deepStrictEqual(wakes, [10])
    }).pipe(Effect.scoped)
  )
})

/** docs/catalog.md#a-catalog-that-cannot-be-read */
describe("a task whose catalog cannot be read", () => {
  it.effect("fails as an operator fault if its job is not bought", () =>
    Effect.gen(function* () {
      const { work } = yield* workAt({}, {}, () => Effect.succeedNone)
      const error = yield* Effect.flip(work.next(woken))
      assert.strictEqual(error._tag === "VendorError" && error.class, "OPERATOR")
    }).pipe(Effect.scoped)
  )

  it.effect("is due again a minute later in its queue if its job is at the vendor", () =>
    Effect.gen(function* () {
      const ends: Array<unknown> = []
      const { work } = yield* workAt(
        {},
        { endPoll: ({ next }) => Effect.sync(() => void ends.push(next)) },
        () => Effect.succeedNone
      )
      const { deadlineAt, startsAt, task } = woken
      yield* work.next({ task, epoch: 3, deadlineAt, queue: "polls", startsAt, job })
      const dueAt = DateTime.add(epoch, { minutes: 1 })
      assert.deepStrictEqual(ends, [{ dueAt, queue: { name: "polls" } }])
    }).pipe(Effect.scoped)
  )
})

/** docs/reference/tasks.md#cancel */
describe("a task that was ended elsewhere while the store is unavailable", () => {
  it.effect("is cancelled at the vendor when the store is back", () =>
    Effect.gen(function* () {
      let failures = 3
      let cancels = 0
      const { work } = yield* workAt(
        { cancel: () => Effect.sync(() => ((cancels += 1), "Canceled" as const)) },
        { job: () => Effect.suspend(() => (failures-- > 0 ? away : Effect.succeedSome(job))) }
      )
      const fiber = yield* Effect.forkChild(work.cancel(woken.task.id))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      assert.strictEqual(cancels, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("is stopped here and cancelled at the vendor when the store is back", () =>
    Effect.gen(function* () {
      let failures = 3
      const did: Array<string> = []
      const checked = Effect.sync(() => (did.push("check"), true))
      const stubs = Layer.mergeAll(
        TaskInbox.layer,
        Drain.layer,
        Layer.mock(WorkNotifier, {}),
        Layer.mock(TaskStore, {}),
        Layer.mock(TaskCompletion, {}),
        Layer.mock(TaskOutput, {}),
        Layer.mock(BatchOutput, {}),
        Layer.mock(RunningTasks, {
          reconcile: Effect.void,
          check: () => Effect.suspend(() => (failures-- > 0 ? away : checked))
        }),
        Layer.mock(VendorWork, { cancel: () => Effect.sync(() => void did.push("cancel")) })
      )
      const context = yield* Layer.build(Layer.provide(TaskRunner.layer, stubs))
      const fiber = yield* Effect.forkChild(Context.get(context, TaskRunner).stop(woken.task.id))
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(did, ["check", "cancel"])
    }).pipe(Effect.scoped)
  )
})
