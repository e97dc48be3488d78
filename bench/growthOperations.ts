/**
 * The operations that are measured on stores of any size, as the service performs them for users with a long history.
 */
import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Layer, Option, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { layerPostgres } from "../src/db/Database.ts"
import {
  ApiKeyId,
  EndpointId,
  UserId,
  makeCallId,
  makeEventId,
  makeTaskId
} from "../src/domain/Ids.ts"
import type { TaskId } from "../src/domain/Ids.ts"
import { CallStore } from "../src/passthrough/CallStore.ts"
import { PartitionStore } from "../src/process/retention/PartitionStore.ts"
import { QueueStore } from "../src/tasks/history/QueueStore.ts"
import { TaskHistoryStore } from "../src/tasks/history/TaskHistoryStore.ts"
import { TaskRetentionStore } from "../src/tasks/privacy/TaskRetentionStore.ts"
import { TaskStore } from "../src/tasks/TaskStore.ts"
import { UsageStore } from "../src/wallet/UsageStore.ts"
import { WalletStore } from "../src/wallet/WalletStore.ts"
import { DeliveryLogStore } from "../src/webhooks/DeliveryLogStore.ts"
import { DeliveryStore } from "../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../src/webhooks/DeliveryStoreLive.ts"
import { mockOutcome } from "../src/webhooks/WebhookSender.ts"
import {
  callEnd,
  callStart,
  drawnCall,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../test/support/wallets.ts"
import { audit, nothingOld, sweep } from "./growthDuties.ts"
import { body as eventBody } from "./measures.ts"

/** One connection, whose process is measured. */
export const layerOf = (url: string) =>
  Layer.mergeAll(
    walletStores,
    DeliveryStoreLive.layer,
    DeliveryLogStore.layer,
    PartitionStore.layer,
    QueueStore.layer,
    TaskHistoryStore.layer,
    TaskRetentionStore.layer,
    UsageStore.layer
  ).pipe(
    Layer.provideMerge(
      layerPostgres({ url: Redacted.make(url), maxConnections: 1, timeouts: "endless" })
    )
  )

export type Services = Layer.Success<ReturnType<typeof layerOf>>

/** A user of the filled store, with its key and one of its two endpoints. */
export interface Person {
  readonly userId: UserId
  readonly key: ApiKeyId
  readonly hook: EndpointId
}

/** Users with the longest history, by the order of their ids, and their endpoints. */
export const people = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ userId: string; key: string; hook: string }>`
    SELECT u.id AS user_id, (SELECT id FROM api_keys WHERE user_id = u.id LIMIT 1) AS key,
      (SELECT id FROM webhook_endpoints WHERE user_id = u.id ORDER BY id LIMIT 1) AS hook
    FROM users u ORDER BY u.id LIMIT 64`
  return rows.map(({ hook, key, userId }): Person => ({
    userId: UserId.make(userId),
    key: ApiKeyId.make(key),
    hook: EndpointId.make(hook)
  }))
})

const batch = 16
const trace = () => randomUUID().replaceAll("-", "")

/** The same store before and after, with what operations leave for later ones. */
export class Bench {
  readonly #people: ReadonlyArray<Person>
  #n = 0
  #open: Array<TaskId> = []
  /** A finished task of the busiest user, and the user's oldest one. */
  old: TaskId | undefined
  /** A settled call of the same user. */
  oldCall: string | undefined

  constructor(users: ReadonlyArray<Person>) {
    this.#people = users
  }

  get #person(): Person {
    return this.#people[this.#n++ % this.#people.length]!
  }
  get #busiest(): Person {
    return this.#people[0]!
  }

  readonly create = Effect.gen({ self: this }, function* () {
    const tasks = yield* TaskStore
    const now = yield* DateTime.now
    const millis = DateTime.toEpochMillis(now)
    const made = Array.from({ length: batch }, () => ({ id: makeTaskId(millis), by: this.#person }))
    yield* Effect.forEach(
      made,
      ({ by, id }) =>
        tasks.accept([
          {
            taskId: id,
            userId: by.userId,
            apiKeyId: by.key,
            runningMax: 0,
            userRunningMax: 0,
            vendor: "fal",
            model: "text-to-image-preview",
            action: "generation",
            resultKind: "images",
            body: { prompt: "A turtle that swims in a calm sea", n: 1 },
            sandbox: false,
            price: 50_000n as never,
            deadlineAt: DateTime.add(now, { hours: 1 }),
            traceId: trace(),
            queue: "submits",
            now,
            event: { id: makeEventId(millis), body: eventBody },
            idempotency: Option.some({
              key: trace(),
              requestHash: new Uint8Array(32),
              responseBody: "{}",
              since: DateTime.subtract(now, { hours: 24 })
            })
          }
        ]),
      { concurrency: "unbounded", discard: true }
    )
    this.#open.push(...made.map(({ id }) => id))
    return batch
  })

  readonly finish = Effect.gen({ self: this }, function* () {
    const tasks = yield* TaskStore
    const now = yield* DateTime.now
    const ended = this.#open.splice(0, batch)
    const event = () => ({ id: makeEventId(DateTime.toEpochMillis(now)), body: eventBody })
    yield* Effect.forEach(
      ended,
      (taskId) =>
        tasks.finish({
          taskId,
          epoch: Option.some(0),
          outcome: {
            status: "completed",
            result: ["https://a.example"],
            captured: 50_000n as never
          },
          event: event(),
          alert: event,
          throttleSeconds: 3600,
          now
        }),
      { concurrency: "unbounded", discard: true }
    )
    this.old ??= ended[0]
    return ended.length
  })

  readonly deliver = Effect.gen({ self: this }, function* () {
    const store = yield* DeliveryStore
    const now = yield* DateTime.now
    const { endpoints } = yield* store.due(Option.none(), now)
    const wanted = endpoints.map((endpointId) => ({ endpointId, limit: 4 }))
    const claimed = yield* store.claim({ wanted, owner: "prc_bench", now, claimedAt: now })
    yield* store.record(
      claimed.map((one) => ({
        claimed: one,
        endedAt: now,
        outcome: mockOutcome(200),
        nextDueAt: Option.none()
      }))
    )
    return claimed.length
  })

  readonly drawnCalls = Effect.gen({ self: this }, function* () {
    const { key, userId } = this.#busiest
    const size = { ...reservation(userId, 0, 10), key }
    const now = DateTime.toEpochMillis(yield* DateTime.now)
    const calls = Array.from({ length: 32 }, () => ({
      ...drawnCall(callStart(userId, 0.01, makeCallId(now), key), 0.001),
      begunAt: now
    }))
    this.oldCall ??= calls[0]?.start.id
    // The first write of a store has no reservation to draw on
    yield* writeReservations({ sizes: [{ ...size, hold: makeCallId(now) }] })
    yield* writeReservations({ sizes: [{ ...size, hold: makeCallId(now) }], ended: calls })
    return calls.length
  })

  readonly heldCalls = Effect.gen({ self: this }, function* () {
    const now = DateTime.toEpochMillis(yield* DateTime.now)
    const starts = Array.from({ length: batch }, () => {
      const { key, userId } = this.#person
      return callStart(userId, 0.01, makeCallId(now), key)
    })
    yield* writeCalls({ starts })
    yield* writeCalls({ ends: starts.map((start) => callEnd(start, 0.001)) })
    return batch
  })

  #tasksOf(filter: object) {
    return Effect.gen({ self: this }, function* () {
      const store = yield* TaskHistoryStore
      yield* store.search(this.#busiest.userId, { limit: 20, ...filter })
      return 1
    })
  }
  readonly listTasks = this.#tasksOf({})
  readonly listModel = this.#tasksOf({ model: "text-to-image-preview" })
  readonly listKey = Effect.suspend(() => this.#tasksOf({ apiKeyId: this.#busiest.key }))

  readonly view = Effect.gen({ self: this }, function* () {
    yield* (yield* TaskStore).view(this.old!)
    return 1
  })

  #deliveriesOf(filter: object) {
    return Effect.gen({ self: this }, function* () {
      const store = yield* DeliveryLogStore
      yield* store.search(this.#busiest.userId, filter, { before: Option.none(), limit: 20 })
      return 1
    })
  }
  readonly listDeliveries = this.#deliveriesOf({})
  readonly listEndpoint = Effect.suspend(() =>
    this.#deliveriesOf({ endpointId: this.#busiest.hook })
  )
  readonly deliveriesOfTask = Effect.gen({ self: this }, function* () {
    yield* (yield* DeliveryLogStore).ofTask(this.old!)
    return 1
  })

  readonly ledger = Effect.gen({ self: this }, function* () {
    const store = yield* WalletStore
    yield* store.search(this.#busiest.userId, { before: Option.none(), limit: 20 })
    return 1
  })
  readonly calls = Effect.gen({ self: this }, function* () {
    yield* (yield* CallStore).search(this.#busiest.userId, { limit: 20 })
    return 1
  })

  readonly receipt = Effect.gen({ self: this }, function* () {
    yield* (yield* CallStore).find(this.#busiest.userId, this.oldCall!)
    return 1
  })

  /** Only today's, because a longer period has more rows to add up. */
  readonly usage = Effect.gen({ self: this }, function* () {
    const day = DateTime.formatIso(yield* DateTime.now).slice(0, 10)
    yield* (yield* UsageStore).sums(
      { from: day, to: day, groups: ["day", "model"], user: this.#busiest.userId },
      { after: Option.none(), limit: 100 }
    )
    return 1
  })
}

/** A name, the operation, and how often a slice repeats it. */
export type Operation = readonly [string, Effect.Effect<number, unknown, Services>, number]
export const operations = (bench: Bench): ReadonlyArray<Operation> => [
  ["create", bench.create, 16],
  ["finish", bench.finish, 16],
  ["deliver", bench.deliver, 8],
  ["call, drawn", bench.drawnCalls, 8],
  ["call, held", bench.heldCalls, 8],
  ["GET a task", bench.view, 40],
  ["list tasks", bench.listTasks, 40],
  ["list tasks of a model", bench.listModel, 40],
  ["list tasks of a key", bench.listKey, 40],
  ["list deliveries", bench.listDeliveries, 40],
  ["list deliveries of an endpoint", bench.listEndpoint, 40],
  ["deliveries of a task", bench.deliveriesOfTask, 40],
  ["list the ledger", bench.ledger, 40],
  ["list calls", bench.calls, 40],
  ["GET a receipt", bench.receipt, 40],
  ["usage of a day", bench.usage, 40],
  ["sweep", sweep, 20],
  ["audit of 100 wallets", audit, 10],
  ["retention, nothing old", nothingOld, 3]
]
