import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import * as Credits from "../../../src/domain/Credits.ts"
import {
  makeApiKeyId,
  makeEndpointId,
  makeEventId,
  makeTaskId,
  makeUserId
} from "../../../src/domain/Ids.ts"
import type { EndpointId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import * as Gateway from "../../../src/Gateway.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import { TaskStore } from "../../../src/tasks/TaskStore.ts"
import type { Finish } from "../../../src/tasks/TaskStore.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import type { ClaimedDelivery } from "../../../src/webhooks/DeliveryStore.ts"
import { EndpointStore } from "../../../src/webhooks/EndpointStore.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { withoutJob } from "../../support/owned.ts"
import { describeStores } from "../../support/stores.ts"

const start = DateTime.makeUnsafe("2026-01-01T00:00:00.000Z")
const at = (seconds: number) => DateTime.add(start, { seconds })
let made = 0
/** A different time for each id, so that ids also differ in their time. */
const moment = () => DateTime.toEpochMillis(start) + (made += 1)
const credits = (amount: number) => Credits.make(BigInt(Math.round(amount * 100)) * 10_000n)
const bytes = (text: string) => new TextEncoder().encode(text)
const event = () => ({ id: makeEventId(moment()), body: bytes("{}") })

const makeUser = Effect.fnUntraced(function* (balance = 100) {
  const id = makeUserId(moment())
  const email = `${id}@example.com`
  yield* (yield* UserStore).create({ id, email, name: null, passwordHash: null, now: start })
  yield* (yield* WalletStore).add({
    userId: id,
    kind: "top_up",
    amount: credits(balance),
    operationId: `${id}:first`,
    note: null,
    traceId: "t",
    now: start
  })
  return id
})

const makeEndpoint = Effect.fnUntraced(function* (userId: UserId) {
  const id = makeEndpointId(moment())
  const created = yield* (yield* EndpointStore).create(
    {
      id,
      userId,
      url: "https://example.com",
      events: ["task.created"],
      description: null,
      enabled: true,
      filter: null,
      format: "gateway",
      secret: bytes("s"),
      secretPreview: "whsec_...abcd",
      now: start
    },
    5
  )
  return Option.map(created, () => id)
})

/** A separate queue, so that a claim takes this task. */
const queueOf = (taskId: TaskId) => `${taskId}/submits`

const claimTask = (taskId: TaskId, owner: string) =>
  Effect.flatMap(TaskStore, (tasks) =>
    Effect.map(tasks.claim({ queue: queueOf(taskId), limit: 1, owner, now: at(5) }), ([owned]) =>
      Option.fromUndefinedOr(owned)
    )
  )

const accept = (userId: UserId) =>
  Effect.gen(function* () {
    const taskId = makeTaskId(moment())
    const outcome = yield* (yield* TaskStore).accept([
      {
        taskId,
        userId,
        apiKeyId: null,
        vendor: "alibaba",
        model: "text-to-image-max",
        action: "generation",
        resultKind: "images",
        body: { prompt: "x" },
        sandbox: true,
        runningMax: 0,
        price: credits(7.5),
        deadlineAt: at(3600),
        traceId: "t",
        now: start,
        event: event(),
        queue: queueOf(taskId),
        idempotency: Option.none()
      }
    ])
    return { taskId, outcome }
  })

const finish = (
  taskId: TaskId,
  epoch: Option.Option<number>,
  outcome: Finish["outcome"] = failure,
  now = at(10)
) =>
  Effect.flatMap(TaskStore, (tasks) =>
    tasks.finish({
      taskId,
      epoch,
      outcome,
      event: event(),
      alert: () => event(),
      throttleSeconds: 3600,
      now
    })
  )
const failure: Finish["outcome"] = {
  status: "failed",
  error: { code: 4004, title: "x", detail: "x" }
}
const success = (captured: number): Finish["outcome"] => ({
  status: "completed",
  result: ["https://example.com/1.png"],
  captured: credits(captured)
})

const wallet = (userId: UserId) =>
  Effect.map(
    Effect.flatMap(WalletStore, (wallets) => wallets.find(userId)),
    (found) => {
      const row = Option.getOrThrow(found)
      return {
        settled: Credits.format(row.settled),
        held: Credits.format(row.held)
      }
    }
  )

const noDrift = Effect.gen(function* () {
  assert.strictEqual(yield* (yield* WalletStore).drift, 0)
})

const claim = (endpointId: EndpointId, now = at(1), limit = 100) =>
  Effect.flatMap(DeliveryStore, (deliveries) =>
    deliveries.claim({ wanted: [{ endpointId, limit }], owner: "proc_a", now, claimedAt: now })
  )

/** The record of an interrupted attempt: due again at once. */
const handedBack = (claimed: ClaimedDelivery, now: DateTime.Utc) =>
  ({
    claimed,
    endedAt: now,
    outcome: { status: null, failure: "lost", detail: null, answer: null, remoteAddress: null },
    nextDueAt: Option.some(now)
  }) as const

const statuses = (endpointId: EndpointId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ status: string }>`
      SELECT status FROM deliveries_and_claims WHERE endpoint_id = ${endpointId} ORDER BY id`
    return rows.map((row) => row.status)
  })

describeStores("the stores", (database) => {
  const suite = Gateway.stores.pipe(Layer.provideMerge(database))

  layer(suite)("accept", (it) => {
    it.effect("holds in parallel never exceed the balance", () =>
      Effect.gen(function* () {
        const user = yield* makeUser(50)
        const answers = yield* Effect.forEach(Array.from({ length: 20 }), () => accept(user), {
          concurrency: "unbounded"
        })
        const accepted = answers.filter((it) => it.outcome._tag === "Accepted")
        assert.strictEqual(accepted.length, 6)
        assert.strictEqual((yield* wallet(user)).held, "45.00")
        yield* noDrift
      })
    )
  })

  layer(suite)("own, attempts and finish", (it) => {
    it.effect("a task has one owner, and the previous owner is fenced", () =>
      Effect.gen(function* () {
        const tasks = yield* TaskStore
        const { taskId } = yield* accept(yield* makeUser())
        const owns = yield* Effect.forEach(
          Array.from({ length: 8 }, (_, n) => `proc_${n}`),
          (owner) => claimTask(taskId, owner),
          { concurrency: "unbounded" }
        )
        const [first] = owns.flatMap((it) => Option.toArray(it))
        assert.strictEqual(owns.filter(Option.isSome).length, 1)
        assert.strictEqual(first!.epoch, 1)
        assert.strictEqual(yield* tasks.runState(taskId, 1), "Owned")
        yield* tasks.releaseRun(taskId, 1)
        const second = Option.getOrThrow(yield* claimTask(taskId, "proc_b"))
        assert.strictEqual(second.epoch, 2)
        assert.strictEqual(yield* tasks.runState(taskId, 1), "Taken")
        // The first owner continues after its pause, and nothing that it writes takes effect
        yield* tasks.releaseRun(taskId, 1)
        const attempt = {
          taskId,
          n: 1,
          vendor: "alibaba",
          accountId: "a",
          bodyHash: bytes("h"),
          queue: { name: queueOf(taskId) },
          now: at(1)
        }
        assert.isFalse(yield* tasks.beginAttempt({ ...attempt, epoch: 1 }))
        assert.strictEqual((yield* finish(taskId, Option.some(1)))._tag, "Fenced")
        assert.isTrue(yield* tasks.beginAttempt({ ...attempt, epoch: 2 }))
        const row = Option.getOrThrow(yield* tasks.find(taskId))
        assert.strictEqual(row.status, "processing")
        const attempted = { n: 1, failure: null, state: "submitted" } as const
        const ended = { taskId, now: at(2) }
        const recorded = (job: string) => ({ ...attempted, handle: { job } })
        assert.isFalse(yield* tasks.endStep({ ...ended, epoch: 1, attempt: recorded("lost") }))
        assert.isTrue(yield* tasks.endStep({ ...ended, epoch: 2, attempt: recorded("j") }))
        yield* tasks.releaseRun(taskId, 2)
        const third = Option.getOrThrow(yield* claimTask(taskId, "proc_c"))
        assert.deepStrictEqual(third.job?.handle, { job: "j" })
        assert.deepStrictEqual(yield* tasks.ownedBy("proc_c"), [{ taskId, epoch: 3 }])
        // A refusal is stored with its class, so that the next owner knows whether to submit again
        const failure = "CONTENT: no"
        const refused = { n: 1, state: "refused", handle: null, failure } as const
        assert.isTrue(yield* tasks.endStep({ ...ended, epoch: 3, attempt: refused }))
        yield* tasks.releaseRun(taskId, 3)
        const fourth = Option.getOrThrow(yield* claimTask(taskId, "proc_c"))
        const { failure: stored, state } = Option.getOrThrow(withoutJob(fourth).attempt)
        assert.deepStrictEqual([state, stored], ["refused", failure])
        assert.strictEqual((yield* finish(taskId, Option.some(4)))._tag, "Finished")
        assert.strictEqual(yield* tasks.runState(taskId, 4), "Ended")
      })
    )

    it.effect("one of many ends of a task wins, and the hold closes once", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { taskId } = yield* accept(user)
        const ends = yield* Effect.forEach(
          Array.from({ length: 10 }, (_, n) => n),
          (n) => finish(taskId, Option.none(), n % 2 === 0 ? success(7.5) : failure),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(ends.filter((it) => it._tag === "Finished").length, 1)
        const after = yield* wallet(user)
        assert.strictEqual(after.held, "0.00")
        assert.include(["100.00", "92.50"], after.settled)
        yield* noDrift
      })
    )
  })

  layer(suite)("deliveries", (it) => {
    const queued = (count = 1) =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const id = Option.getOrThrow(yield* makeEndpoint(user))
        for (let n = 0; n < count; n += 1) yield* accept(user)
        return { user, id }
      })

    it.effect("are each claimed once by parallel claims", () =>
      Effect.gen(function* () {
        const { id } = yield* queued(5)
        const claims = yield* Effect.forEach(Array.from({ length: 6 }), () => claim(id), {
          concurrency: "unbounded"
        })
        const ids = claims.flat().map((it) => it.id)
        assert.strictEqual(ids.length, 5)
        assert.strictEqual(new Set(ids).size, 5)
      })
    )

    it.effect("are due again after a failure, and done after a success", () =>
      Effect.gen(function* () {
        const deliveries = yield* DeliveryStore
        const { id } = yield* queued()
        const [first] = yield* claim(id)
        const record = { claimed: first!, endedAt: at(2) }
        yield* deliveries.record([
          { ...record, outcome: mockOutcome(500), nextDueAt: Option.some(at(17)) }
        ])
        assert.deepStrictEqual(yield* statuses(id), ["pending"])
        assert.strictEqual((yield* claim(id, at(16))).length, 0)
        const [second] = yield* claim(id, at(17))
        assert.strictEqual(second!.id, first!.id)
        assert.deepStrictEqual([second!.attempt, second!.seq], [1, 2])
        // The record of an abandoned attempt changes nothing
        yield* deliveries.record([
          { ...record, outcome: mockOutcome(200), nextDueAt: Option.none() }
        ])
        assert.deepStrictEqual(yield* statuses(id), ["delivering"])
        yield* deliveries.record([
          {
            claimed: second!,
            endedAt: at(18),
            outcome: mockOutcome(200),
            nextDueAt: Option.none()
          }
        ])
        assert.deepStrictEqual(yield* statuses(id), ["succeeded"])
      })
    )

    it.effect(
      "of a dead process or an unfinished claim are due again, and the attempt is not counted",
      () =>
        Effect.gen(function* () {
          const deliveries = yield* DeliveryStore
          const processes = yield* ProcessStore
          const { id } = yield* queued()
          yield* claim(id, at(1))
          yield* processes.heartbeat("proc_a", at(100))
          assert.strictEqual(
            (yield* deliveries.requeueLost(at(90), at(0), at(100), 1000)).rescued,
            0
          )
          assert.isAtLeast((yield* deliveries.requeueLost(at(90), at(2), at(100), 1000)).rescued, 1)
          const [again] = yield* claim(id, at(100))
          assert.deepStrictEqual([again!.attempt, again!.seq], [0, 2])
          yield* processes.leave("proc_a", at(100))
          assert.isAtLeast((yield* deliveries.requeueLost(at(90), at(0), at(101), 1000)).rescued, 1)
          const [third] = yield* claim(id, at(101))
          yield* deliveries.record([handedBack(third!, at(102))])
          assert.deepStrictEqual(yield* statuses(id), ["pending"])
          assert.strictEqual((yield* claim(id, at(102))).length, 1)
        })
    )

    it.effect("are skipped if their endpoint is disabled, also if they are freed later", () =>
      Effect.gen(function* () {
        const deliveries = yield* DeliveryStore
        const endpoints = yield* EndpointStore
        const { id, user } = yield* queued(2)
        const [flying] = yield* claim(id, at(1), 1)
        yield* endpoints.update(user, id, { enabled: false }, at(2))
        assert.deepStrictEqual([...(yield* statuses(id))].sort(), ["delivering", "skipped"])
        assert.strictEqual((yield* claim(id, at(3))).length, 0)
        yield* deliveries.record([handedBack(flying!, at(1000))])
        assert.deepStrictEqual(yield* statuses(id), ["skipped", "skipped"])
        assert.deepStrictEqual(
          (yield* deliveries.due(Option.none(), at(2000))).endpoints.includes(id),
          false
        )
      })
    )
  })

  layer(suite)("users, endpoints and the ledger", (it) => {
    it.effect("a user gets five of ten endpoints that are created at once", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const created = yield* Effect.forEach(
          Array.from({ length: 10 }),
          () => makeEndpoint(user),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(created.filter(Option.isSome).length, 5)
      })
    )

    it.effect("a revoked key is found as revoked by its hash", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const userId = yield* makeUser()
        const id = makeApiKeyId(moment())
        const key = { id, userId, keyHash: bytes(id), preview: "sk-...abcd", name: "x" }
        yield* users.createKey({ ...key, scopes: ["inference"], expiresAt: null, now: start })
        assert.deepStrictEqual(yield* users.revokeKey(userId, id, at(1)), Option.some(false))
        assert.isTrue(Option.isNone(yield* users.revokeKey(yield* makeUser(), id, at(2))))
        const found = Option.getOrThrow(yield* users.findKeyByHash(bytes(id)))
        assert.deepStrictEqual(found.revokedAt, at(1))
      })
    )
  })
})
