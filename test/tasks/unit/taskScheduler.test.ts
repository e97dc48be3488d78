import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Deferred, Effect, Layer, Option } from "effect"
import { AppConfig } from "../../../src/config/Config.ts"
import { zero } from "../../../src/domain/Credits.ts"
import { makeTaskId } from "../../../src/domain/Ids.ts"
import { stepsPerQueueMax } from "../../../src/domain/limits/Limits.ts"
import { StoreUnavailable } from "../../../src/domain/Problem.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { Secrets } from "../../../src/process/secrets/Secrets.ts"
import { makeAccept } from "../../../src/tasks/creation/TaskAcceptance.ts"
import type { Owned } from "../../../src/tasks/running/OwnedTask.ts"
import { TaskInbox } from "../../../src/tasks/running/TaskInbox.ts"
import { submitQueue } from "../../../src/tasks/running/TaskQueue.ts"
import { TaskRunner } from "../../../src/tasks/running/TaskRunner.ts"
import * as TaskScheduler from "../../../src/tasks/running/TaskScheduler.ts"
import { ConcurrencyLimiter } from "../../../src/tasks/submission/ConcurrencyLimiter.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { Acceptance, Claim } from "../../../src/tasks/TaskStore.ts"
import { VendorClient } from "../../../src/vendors/VendorClient.ts"
import { eventually } from "../../support/gateway.ts"
import { mockProcess } from "../../support/mockProcess.ts"
import { ownedEntry as entry, ownedTask } from "../../support/owned.ts"

const epoch = DateTime.makeUnsafe(0)
const { userId } = ownedTask.task

const many = (claim: Claim, count = claim.limit) =>
  Array.from({ length: Math.min(count, claim.limit) }, () => ({
    ...ownedTask,
    queue: claim.queue
  }))

interface Bench {
  /** Queues with due tasks. */
  readonly queues: ReadonlyArray<string>
  readonly claim: (claim: Claim) => Effect.Effect<ReadonlyArray<Owned>, StoreUnavailable>
  /** By default a step ends at once, as in a draining process. */
  readonly step?: (owned: Owned) => Effect.Effect<void>
  readonly isAlive?: () => boolean
}

/** A scheduler with the test's store and runner. Records the claims and the accepted tasks. */
const start = Effect.fnUntraced(function* ({ claim, isAlive = () => true, queues, step }: Bench) {
  const claims: Array<Claim> = []
  const begun: Array<Owned> = []
  const accepted: Array<Acceptance> = []
  const layer = TaskScheduler.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        AppConfig.layerOf({ DATA_DIR: "unused" }),
        Drain.layer,
        TaskInbox.layer,
        // The task has no webhook that needs a secret
        Layer.succeed(Secrets, {} as never),
        mockProcess({
          deaths: Effect.succeed(Effect.never),
          aliveSince: Effect.succeed(epoch),
          isAlive
        }),
        Layer.mock(ConcurrencyLimiter, { serve: Effect.succeed(false) }),
        Layer.mock(TaskRunner, {
          step: (owned) =>
            Effect.suspend(() => {
              begun.push(owned)
              return step?.(owned) ?? Effect.void
            })
        }),
        Layer.mock(VendorClient, {
          isSandbox: () => true,
          isServed: () => true,
          accountsFor: () => []
        }),
        Layer.mock(TaskStore, {
          share: () => Effect.succeed([]),
          queues: () => Effect.succeed(queues.map((queue) => ({ queue, dueAt: epoch }))),
          claim: (asked) =>
            Effect.suspend(() => {
              claims.push(asked)
              return claim(asked)
            }),
          accept: (acceptances) =>
            Effect.sync(() => {
              accepted.push(...acceptances)
              return { _tag: "Accepted" as const, balance: zero, endpoints: [], left: null }
            })
        })
      )
    )
  )
  const context = yield* Layer.build(layer)
  return { accepted, begun, claims, context }
})

const request = {
  principal: { userId, apiKeyId: "key" } as never,
  path: entry,
  body: {},
  traceId: "0".repeat(32),
  idempotency: Option.none(),
  maxCost: undefined
}

const create = Effect.flatMap(makeAccept, (accept) =>
  accept(request, [
    {
      request,
      offer: { catalogId: null, sandbox: true },
      taskId: makeTaskId(0),
      priced: {
        media: [],
        body: { prompt: "A lighthouse" } as never,
        metadata: null,
        webhook: null,
        models: [{ entry, amount: zero }],
        leftOut: [],
        most: zero
      }
    }
  ])
)

/** Real time in which an unwanted effect would happen. */
const settle = Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 100)))

/** Waits a limited real time, because the scheduler collects due tasks for some milliseconds. */
const until = (is: () => boolean) => eventually(Effect.sync(is), Boolean)

describe("the scheduler of due tasks", () => {
  it.effect("claims nothing more once the process drains, however many tasks are due", () =>
    Effect.gen(function* () {
      const draining = yield* Deferred.make<void>()
      const { claims, context } = yield* start({
        queues: ["q"],
        // Released tasks are due again
        claim: (asked) => Effect.as(Deferred.await(draining), many(asked))
      })
      yield* until(() => claims.length > 0)
      yield* Context.get(context, Drain).begin
      yield* Deferred.succeed(draining, undefined)
      yield* settle
      assert.strictEqual(claims.length, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("takes the tasks claimed from one queue when the claim from another fails", () =>
    Effect.gen(function* () {
      const committed = yield* Deferred.make<void>()
      const { begun, claims } = yield* start({
        queues: ["broken", "q"],
        claim: (asked) =>
          asked.queue === "broken"
            ? Effect.fail(new StoreUnavailable({ cause: "test" }))
            : Effect.as(Deferred.await(committed), many(asked, 1))
      })
      yield* until(() => new Set(claims.map(({ queue }) => queue)).size === 2)
      yield* Deferred.succeed(committed, undefined)
      yield* until(() => begun.length > 0)
      yield* settle
      assert.deepStrictEqual(
        begun.map(({ queue }) => queue),
        ["q"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("takes no new task while older tasks of its queue wait for a place", () =>
    Effect.gen(function* () {
      const queue = submitQueue(entry).name
      const ends: Array<Deferred.Deferred<void>> = []
      let waiting = stepsPerQueueMax + 1
      let isSlow = false
      const { accepted, begun, context } = yield* start({
        queues: [queue],
        claim: (asked) =>
          isSlow
            ? Effect.never
            : Effect.sync(() => {
                const claimed = many(asked, waiting)
                waiting -= claimed.length
                return claimed
              }),
        step: () => {
          const end = Deferred.makeUnsafe<void>()
          ends.push(end)
          return Deferred.await(end)
        }
      })
      yield* until(() => begun.length >= stepsPerQueueMax)
      yield* settle
      assert.deepStrictEqual([begun.length, waiting], [stepsPerQueueMax, 1])
      // One has ended, and the store has not yet returned the task that has waited longest
      isSlow = true
      yield* Deferred.succeed(ends[0]!, undefined)
      yield* until(() => Context.get(context, TaskInbox).capacity(queue) > 0)
      yield* settle
      assert.strictEqual(Context.get(context, TaskInbox).capacity(queue), 1)
      yield* Effect.provideContext(create, context)
      assert.deepStrictEqual(
        accepted.map(({ owner }) => owner),
        [undefined]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("claims and takes nothing while its process counts as dead, as after a pause", () =>
    Effect.gen(function* () {
      let isAlive = false
      const queue = submitQueue(entry).name
      const { accepted, claims, context } = yield* start({
        queues: [queue],
        isAlive: () => isAlive,
        claim: () => Effect.succeed([])
      })
      yield* settle
      yield* Effect.provideContext(create, context)
      assert.deepStrictEqual([claims.length, accepted[0]?.owner], [0, undefined])
      isAlive = true
      Context.get(context, TaskInbox).wake()
      yield* until(() => claims.length > 0)
      yield* Effect.provideContext(create, context)
      assert.deepStrictEqual([claims.length > 0, accepted[1]?.owner], [true, "proc_a"])
    }).pipe(Effect.scoped)
  )

  it.effect("takes new tasks at once again when no older task waits", () =>
    Effect.gen(function* () {
      const queue = submitQueue(entry).name
      let waiting = 0
      const { context } = yield* start({
        queues: [queue],
        claim: (asked) =>
          Effect.sync(() => {
            const claimed = many(asked, waiting)
            waiting -= claimed.length
            return claimed
          })
      })
      const inbox = Context.get(context, TaskInbox)
      for (let n = 0; n < stepsPerQueueMax; n += 1) inbox.count(queue, 1)
      assert.isFalse(inbox.admits(queue))
      inbox.count(queue, -1)
      assert.isFalse(inbox.admits(queue), "the task that was not admitted waits")
      waiting = 1
      inbox.wake()
      yield* until(() => waiting === 0)
      yield* settle
      assert.isTrue(inbox.admits(queue))
    }).pipe(Effect.scoped)
  )
})
