import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Option } from "effect"
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
/** A separate time for each id, so that ids differ in their time too. */
const moment = () => DateTime.toEpochMillis(start) + (made += 1)
const credits = (amount: number) => Credits.make(BigInt(Math.round(amount * 100)) * 10_000n)
const bytes = (text: string) => new TextEncoder().encode(text)
const event = () => ({ id: makeEventId(moment()), body: bytes("{}") })

const makeUser = Effect.fnUntraced(function* (balance = 100) {
  const id = makeUserId(moment())
  const email = `${id}@example.com`
  yield* (yield* UserStore).create({ id, email, name: null, passwordHash: null, now: start })
  if (balance > 0) yield* topUp(id, balance, "first")
  return id
})

const topUp = (userId: UserId, amount: number, operation: string) =>
  Effect.flatMap(WalletStore, (wallets) =>
    wallets.add({
      userId,
      kind: amount < 0 ? "adjustment" : "top_up",
      amount: credits(amount),
      operationId: `${userId}:${operation}`,
      note: null,
      traceId: "t",
      now: start
    })
  )

const makeEndpoint = Effect.fnUntraced(function* (
  userId: UserId,
  events: ReadonlyArray<"task.created" | "task.succeeded" | "balance.low"> = ["task.created"]
) {
  const id = makeEndpointId(moment())
  const created = yield* (yield* EndpointStore).create(
    {
      id,
      userId,
      url: "https://example.com",
      events,
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

/** A queue of its own, so that a claim takes this task. */
const queueOf = (taskId: TaskId) => `${taskId}/submits`

const claimTask = (taskId: TaskId, owner: string) =>
  Effect.flatMap(TaskStore, (tasks) =>
    Effect.map(tasks.claim({ queue: queueOf(taskId), limit: 1, owner, now: at(5) }), ([owned]) =>
      Option.fromUndefinedOr(owned)
    )
  )

const accept = (
  userId: UserId,
  options: { readonly price?: number; readonly key?: string; readonly hash?: string } = {}
) =>
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
        price: credits(options.price ?? 7.5),
        deadlineAt: at(3600),
        traceId: "t",
        now: start,
        event: event(),
        queue: queueOf(taskId),
        idempotency:
          options.key === undefined
            ? Option.none()
            : Option.some({
                key: options.key,
                requestHash: bytes(options.hash ?? "h"),
                responseBody: JSON.stringify({ id: taskId }),
                since: at(-86_400)
              })
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
        held: Credits.format(row.held),
        state: row.state
      }
    }
  )

const countOf = (userId: UserId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql`SELECT
      (SELECT count(*)::int FROM tasks WHERE user_id = ${userId}) AS tasks,
      (SELECT count(*)::int FROM holds WHERE user_id = ${userId}) AS holds,
      (SELECT count(*)::int FROM events WHERE user_id = ${userId}) AS events,
      (SELECT count(*)::int FROM deliveries WHERE user_id = ${userId}) AS deliveries,
      (SELECT count(*)::int FROM idempotency_keys WHERE user_id = ${userId}) AS keys,
      (SELECT count(*)::int FROM runs r JOIN tasks t ON t.id = r.task_id WHERE t.user_id = ${userId}) AS runs`
    return row
  })

const noDrift = Effect.gen(function* () {
  assert.strictEqual(yield* (yield* WalletStore).drift, 0)
})

const claim = (endpointId: EndpointId, now = at(1), limit = 100) =>
  Effect.flatMap(DeliveryStore, (deliveries) =>
    deliveries.claim({ wanted: [{ endpointId, limit }], owner: "proc_a", now, claimedAt: now })
  )

/** The record of an attempt that was interrupted: due again at once. */
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
    it.effect("50 equal idempotent creates in parallel: one task, one hold, equal responses", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        yield* makeEndpoint(user)
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }),
          () => accept(user, { key: "k" }),
          { concurrency: "unbounded" }
        )
        const accepted = answers.filter((it) => it.outcome._tag === "Accepted")
        assert.strictEqual(accepted.length, 1)
        for (const { outcome } of answers) {
          if (outcome._tag !== "Replayed") continue
          assert.strictEqual(outcome.body, JSON.stringify({ id: accepted[0]!.taskId }))
          assert.strictEqual(Credits.format(outcome.balance), "92.50")
        }
        assert.deepStrictEqual(yield* countOf(user), {
          tasks: 1,
          holds: 1,
          events: 1,
          deliveries: 1,
          keys: 1,
          runs: 1
        })
        yield* noDrift
      })
    )

    it.effect("a balance lower than the price leaves no row in any table", () =>
      Effect.gen(function* () {
        const user = yield* makeUser(7.49)
        yield* makeEndpoint(user)
        const { outcome } = yield* accept(user, { key: "k" })
        assert.strictEqual(outcome._tag, "BalanceTooLow")
        assert.deepStrictEqual(yield* countOf(user), {
          tasks: 0,
          holds: 0,
          events: 0,
          deliveries: 0,
          keys: 0,
          runs: 0
        })
        assert.deepStrictEqual(yield* wallet(user), {
          settled: "7.49",
          held: "0.00",
          state: "NORMAL"
        })
      })
    )

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
    it.effect("a task has one owner; the previous owner is fenced", () =>
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
        // The first owner continues after its pause: nothing that it writes takes effect
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

    it.effect("of many that end a task one wins; the hold closes once", () =>
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

    it.effect("success settles what was produced and releases the rest", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { taskId } = yield* accept(user, { price: 30 })
        yield* finish(taskId, Option.none(), success(7.5))
        const after = yield* wallet(user)
        assert.deepStrictEqual([after.settled, after.held], ["92.50", "0.00"])
        yield* noDrift
      })
    )

    it.effect("more than the hold is never captured, and that transaction changes nothing", () =>
      Effect.gen(function* () {
        const user = yield* makeUser()
        const { taskId } = yield* accept(user)
        const exit = yield* Effect.exit(finish(taskId, Option.none(), success(7.51)))
        assert.isTrue(Exit.isFailure(exit))
        assert.strictEqual((yield* wallet(user)).held, "7.50")
        assert.strictEqual((yield* finish(taskId, Option.none()))._tag, "Finished")
        yield* noDrift
      })
    )

    it.effect("balance.low fires at the crossing, in the charge's transaction", () =>
      Effect.gen(function* () {
        const user = yield* makeUser(1010)
        const sql = yield* SqlClient.SqlClient
        const alerts = Effect.map(
          sql`SELECT id FROM events WHERE user_id = ${user} AND type = 'balance.low'`,
          (rows) => rows.length
        )
        const charge = (now: DateTime.Utc) =>
          Effect.flatMap(accept(user), ({ taskId }) =>
            finish(taskId, Option.none(), success(7.5), now)
          )
        yield* charge(at(1))
        assert.strictEqual(yield* alerts, 0)
        // Below, without a subscriber: no event, and the wallet stays normal
        yield* charge(at(2))
        assert.strictEqual((yield* wallet(user)).state, "NORMAL")
        yield* makeEndpoint(user, ["balance.low"])
        // A hold alone fires nothing
        yield* accept(user)
        assert.strictEqual(yield* alerts, 0)
        yield* charge(at(3))
        assert.strictEqual(yield* alerts, 1)
        assert.strictEqual((yield* wallet(user)).state, "ALERTED")
        yield* charge(at(4))
        assert.strictEqual(yield* alerts, 1)
        // A top-up above the threshold re-arms at once
        yield* topUp(user, 100, "again")
        assert.strictEqual((yield* wallet(user)).state, "NORMAL")
        for (let n = 0; n < 15; n += 1) yield* charge(at(5))
        assert.strictEqual(yield* alerts, 2)
        // Recovery by an adjustment alone waits for the throttle window
        const wallets = yield* WalletStore
        yield* wallets.add({
          userId: user,
          kind: "adjustment",
          amount: credits(100),
          operationId: `${user}:adjustment`,
          note: "x",
          traceId: "t",
          now: at(6)
        })
        for (let n = 0; n < 15; n += 1) yield* charge(at(7))
        assert.strictEqual((yield* wallet(user)).state, "NORMAL")
        assert.strictEqual(yield* alerts, 2)
        yield* charge(at(5 + 3600))
        assert.strictEqual(yield* alerts, 3)
        yield* noDrift
      })
    )

    it.effect("the rescuer frees what dead processes had in hand", () =>
      Effect.gen(function* () {
        const tasks = yield* TaskStore
        const processes = yield* ProcessStore
        const user = yield* makeUser()
        const [a, b] = yield* Effect.all([accept(user), accept(user)])
        yield* processes.heartbeat("proc_live", at(100))
        yield* processes.heartbeat("proc_dead", at(80))
        yield* claimTask(a.taskId, "proc_live")
        yield* claimTask(b.taskId, "proc_dead")
        assert.isAtLeast(yield* tasks.releaseOrphans(at(90), 1000), 1)
        assert.isTrue(Option.isNone(yield* claimTask(a.taskId, "proc_live")))
        assert.isTrue(Option.isSome(yield* claimTask(b.taskId, "proc_live")))
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

    it.effect("each is claimed once by parallel claims", () =>
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

    it.effect("a failed one is due again, a succeeded one is done", () =>
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

    it.effect("what a dead process or an unfinished claim left is due again, uncounted", () =>
      Effect.gen(function* () {
        const deliveries = yield* DeliveryStore
        const processes = yield* ProcessStore
        const { id } = yield* queued()
        yield* claim(id, at(1))
        yield* processes.heartbeat("proc_a", at(100))
        assert.strictEqual((yield* deliveries.requeueLost(at(90), at(0), at(100), 1000)).rescued, 0)
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

    it.effect("disabling skips pending deliveries, also those freed after it", () =>
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
    it.effect("a user has five of ten endpoints created at once", () =>
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

    it.effect("an e-mail address belongs to one user, on create and on change", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const [a, b] = [yield* makeUser(0), yield* makeUser(0)]
        const email = `${a}@EXAMPLE.com`
        assert.strictEqual((yield* users.update(b, { email }, start))._tag, "EmailTaken")
        assert.strictEqual((yield* users.update(a, { email }, start))._tag, "Updated")
        const unknown = makeUserId(moment())
        assert.strictEqual((yield* users.update(unknown, { name: "x" }, start))._tag, "Unknown")
        const again = { id: unknown, email, name: null, passwordHash: null, now: start }
        assert.isTrue(Option.isNone(yield* users.create(again)))
      })
    )

    it.effect("a revoked key is found as revoked, by its hash alone", () =>
      Effect.gen(function* () {
        const users = yield* UserStore
        const userId = yield* makeUser(0)
        const id = makeApiKeyId(moment())
        const key = { id, userId, keyHash: bytes(id), preview: "sk-...abcd", name: "x" }
        yield* users.createKey({ ...key, scopes: ["inference"], expiresAt: null, now: start })
        assert.deepStrictEqual(yield* users.revokeKey(userId, id, at(1)), Option.some(false))
        assert.isTrue(Option.isNone(yield* users.revokeKey(yield* makeUser(0), id, at(2))))
        const found = Option.getOrThrow(yield* users.findKeyByHash(bytes(id)))
        assert.deepStrictEqual(found.revokedAt, at(1))
      })
    )

    it.effect(
      "the same operation id twice changes nothing; the balance never falls below what is held",
      () =>
        Effect.gen(function* () {
          const user = yield* makeUser(10)
          yield* topUp(user, 10, "first")
          assert.strictEqual((yield* wallet(user)).settled, "10.00")
          yield* accept(user)
          assert.strictEqual((yield* topUp(user, -2.51, "down"))._tag, "BelowHeld")
          assert.strictEqual((yield* topUp(user, -2.5, "down"))._tag, "Added")
          yield* noDrift
        })
    )

    it.effect("ledger rows are never changed, removed or truncated", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const user = yield* makeUser()
        for (const statement of [
          sql`UPDATE wallet_entries SET amount = 1 WHERE user_id = ${user}`,
          sql`DELETE FROM wallet_entries WHERE user_id = ${user}`,
          sql`TRUNCATE wallet_entries`
        ]) {
          assert.isTrue(Exit.isFailure(yield* Effect.exit(statement)))
        }
        assert.strictEqual((yield* (yield* WalletStore).search(user, page)).rows.length, 1)
      })
    )
  })
})

const page = { before: Option.none<bigint>(), limit: 10 }
