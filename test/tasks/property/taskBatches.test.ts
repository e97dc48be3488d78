import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option } from "effect"
import * as fc from "fast-check"
import { randomUUID } from "node:crypto"
import type { TaskId, UserId } from "../../../src/domain/Ids.ts"
import type { Acceptance } from "../../../src/tasks/TaskStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callKeyOf,
  credits,
  finish,
  newCaller,
  newTaskId,
  subscribe,
  walletStores
} from "../../support/wallets.ts"

const noon = DateTime.makeUnsafe("2026-11-20T12:00:00Z")

/** A create by one of the users; `again` repeats the task of an earlier create. */
interface Create {
  readonly by: number
  readonly price: number
  readonly isKeyed: boolean
  readonly model: string
  readonly key: string | undefined
  readonly again: number | undefined
  readonly minute: number
  readonly runningMax: number
  readonly userRunningMax: number
  readonly metadata: object | null
  /** The number of further tasks created together with it. */
  readonly others: number
}

/** The end of the n-th task: `share` in quarters of its price; `undefined`: it failed. An owner passes its epoch. */
interface End {
  readonly n: number
  readonly share: number | undefined
  readonly epoch: number | undefined
  readonly throttle: number
}

interface Round {
  readonly creates: ReadonlyArray<Create>
  readonly ends: ReadonlyArray<End>
}

const create: fc.Arbitrary<Create> = fc.record({
  by: fc.nat({ max: 1 }),
  price: fc.constantFrom(0, 0.000001, 1, 7.5, 13.4, 50),
  isKeyed: fc.boolean(),
  model: fc.constantFrom("a", "a", "a", "b"),
  key: fc.constantFrom(undefined, undefined, "x", "y"),
  again: fc.option(fc.nat({ max: 8 }), { freq: 6, nil: undefined }),
  // Within a batch a period of the budget begins and a record of an idempotency key expires
  minute: fc.constantFrom(0, 0, 0, 1, 1440, 1500),
  runningMax: fc.constantFrom(0, 0, 3),
  userRunningMax: fc.constantFrom(0, 0, 0, 4),
  metadata: fc.constantFrom(null, { z: 1, a: 2 }),
  others: fc.constantFrom(0, 0, 0, 1, 2)
})
const end: fc.Arbitrary<End> = fc.record({
  n: fc.nat({ max: 20 }),
  share: fc.constantFrom(undefined, 0, 1, 3, 4, 4),
  epoch: fc.constantFrom(undefined, 0, 0, 1),
  throttle: fc.constantFrom(0, 3600)
})
const round: fc.Arbitrary<Round> = fc.record({
  creates: fc.array(create, { minLength: 1, maxLength: 12 }),
  ends: fc.array(end, { maxLength: 12 })
})

/** Two users with an endpoint each; the key of the first has a limit of each kind. */
const people = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const [limited, free] = [yield* newCaller(100), yield* newCaller(60)]
  for (const user of [limited, free]) {
    yield* subscribe(user, ["task.created", "task.succeeded", "balance.low"])
    yield* subscribe(user, ["task.failed", "task.succeeded"])
    yield* sql`UPDATE wallets SET trigger_threshold = ${String(credits(40))} WHERE user_id = ${user}`
  }
  yield* sql`UPDATE wallets SET key_limits = true WHERE user_id = ${limited}`
  yield* sql`
    UPDATE api_keys SET spend_limit = ${String(credits(70))}, spend_reset = 'daily', allowed_models = '{a}',
      concurrent_tasks = 6
    WHERE user_id = ${limited}`
  yield* sql`
    INSERT INTO key_budgets (api_key_id, epoch, since, spent, held)
    VALUES (${callKeyOf(limited)}, 1, ${DateTime.toDateUtc(noon)}, 0, 0)`
  return [limited, free]
})

/** Everything that creates and ends write, without the ids of events and deliveries. */
const rowsOf = Effect.fnUntraced(function* (users: ReadonlyArray<UserId>) {
  const sql = yield* PgClient.PgClient
  const keys = users.map(callKeyOf)
  const mine = sql`user_id = ANY(${users}::uuid[])`
  const of = (rows: Effect.Effect<ReadonlyArray<object>, unknown>) => rows
  return yield* Effect.all({
    // The position of an entry differs, but not that it exists
    wallets: of(sql`
      SELECT w.*, EXISTS (SELECT FROM wallet_entries e
        WHERE e.ctid = w.last_entry::tid AND e.user_id = w.user_id AND e.seq = w.entry_count) AS last_entry
      FROM wallets w WHERE ${mine}`),
    entries: of(sql`
      SELECT * FROM wallet_entries WHERE ${mine} AND kind <> 'top_up' ORDER BY user_id = ${users[0]!}, seq`),
    holds: of(sql`SELECT * FROM holds WHERE ${mine}`),
    budgets: of(sql`SELECT * FROM key_budgets WHERE api_key_id = ANY(${keys}::text[])`),
    tasks: of(sql`SELECT *, metadata::text AS given FROM tasks WHERE ${mine}`),
    runs: of(sql`SELECT r.* FROM runs r JOIN tasks t ON t.id = r.task_id WHERE ${mine}`),
    replays: of(sql`SELECT * FROM idempotency_keys WHERE ${mine}`),
    events: of(
      sql`SELECT created_at, user_id, type, task_id, body, trace_id FROM events WHERE ${mine}`
    ),
    deliveries: of(sql`
      SELECT d.user_id, d.event_type, d.task_id, d.status, d.created_at, d.updated_at, e.events, q.due_at, q.attempt
      FROM deliveries d JOIN webhook_endpoints e ON e.id = d.endpoint_id LEFT JOIN delivery_queue q ON q.id = d.id
      WHERE d.user_id = ANY(${users}::uuid[])`),
    usage: of(sql`SELECT * FROM usage_days WHERE ${mine}`)
  })
})

interface Made {
  readonly by: number
  readonly id: TaskId
  readonly price: number
  readonly more: ReadonlyArray<TaskId>
}

/** The same users on both sides: the calls of a round are one batch on one side, and sequential on the other. */
class Side {
  readonly users: ReadonlyArray<UserId>
  readonly concurrency: 1 | "unbounded"
  readonly tasks: Array<Made> = []
  readonly #names = new Map<string, string>()

  constructor(users: ReadonlyArray<UserId>, concurrency: Side["concurrency"]) {
    this.users = users
    this.concurrency = concurrency
    users.forEach((user, n) => this.#names.set(user, `user ${n}`))
  }

  readonly create = Effect.fnUntraced(function* (this: Side, creates: ReadonlyArray<Create>) {
    const made = creates.map((it) => {
      const mine = this.tasks.filter(({ by }) => by === it.by)
      const more = Array.from({ length: it.others }, newTaskId)
      const made = { by: it.by, id: newTaskId(), price: it.price, more }
      const task = mine[it.again ?? mine.length] ?? made
      if (!mine.includes(task)) {
        for (const [n, id] of [task.id, ...more].entries()) {
          this.#names.set(id, `task ${this.tasks.length}.${n}`)
        }
        this.tasks.push(task)
      }
      return { ...it, ...task, now: DateTime.add(noon, { minutes: it.minute }) }
    })
    const outcomes = yield* Effect.forEach(made, (it) => this.#accept(it), {
      concurrency: this.concurrency
    })
    return outcomes.map((outcome) =>
      outcome._tag === "Accepted"
        ? [outcome.balance, outcome.left, outcome.endpoints.length]
        : outcome
    )
  })

  #accept(it: Create & Made & { readonly now: DateTime.Utc }) {
    const user = this.users[it.by]!
    const create: Partial<Acceptance> = {
      taskId: it.id,
      apiKeyId: it.isKeyed ? callKeyOf(user) : null,
      model: it.model,
      metadata: it.metadata as never,
      runningMax: it.runningMax,
      userRunningMax: it.userRunningMax,
      now: it.now,
      deadlineAt: DateTime.add(it.now, { hours: 1 }),
      event: { id: `evt_${randomUUID()}` as never, body: new Uint8Array([it.minute % 256]) },
      idempotency: Option.map(Option.fromUndefinedOr(it.key), (key) => ({
        key,
        requestHash: new Uint8Array([it.by, it.minute % 256]),
        responseBody: `{"price":${it.price}}`,
        since: DateTime.subtract(it.now, { hours: 24 })
      }))
    }
    return Effect.map(accept(user, it.price, create, it.more), ({ outcome }) => outcome)
  }

  readonly end = Effect.fnUntraced(function* (this: Side, ends: ReadonlyArray<End>) {
    const outcomes = yield* Effect.forEach(
      this.tasks.length === 0 ? [] : ends,
      ({ epoch, n, share, throttle }) => {
        const { id, price } = this.tasks[n % this.tasks.length]!
        const captured = share === undefined ? undefined : (price * share) / 4
        return finish(id, captured, {
          epoch: Option.fromUndefinedOr(epoch),
          event: { id: `evt_${randomUUID()}` as never, body: new Uint8Array([1]) },
          alert: ({ available, threshold, userId }) => ({
            id: `evt_${randomUUID()}` as never,
            body: Buffer.from(`${this.#names.get(userId)} ${available} ${threshold}`)
          }),
          throttleSeconds: throttle,
          now: DateTime.add(noon, { minutes: 2000 })
        })
      },
      { concurrency: this.concurrency }
    )
    return outcomes.map((it) => (it._tag === "Finished" ? it.endpoints.length : it._tag))
  })

  /** The rows, with names instead of ids, in an order that does not depend on ids. */
  readonly rows = Effect.suspend(() =>
    Effect.map(rowsOf(this.users), (tables) =>
      Object.fromEntries(
        Object.entries(tables).map(([table, rows]) => {
          const lines = rows.map((row) => this.#named(JSON.stringify(row, jsonable)))
          return [table, table === "entries" ? lines : lines.toSorted()]
        })
      )
    )
  )

  #named(text: string): string {
    return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/gu, (id) => this.#names.get(id) ?? id)
  }
}

const jsonable = (_key: string, value: unknown) =>
  typeof value === "bigint" ? String(value) : value

const same = Effect.fnUntraced(function* (rounds: ReadonlyArray<Round>) {
  const sample = JSON.stringify(rounds)
  const batched = new Side(yield* people, "unbounded")
  const single = new Side(yield* people, 1)
  for (const { creates, ends } of rounds) {
    assert.deepStrictEqual(yield* batched.create(creates), yield* single.create(creates), sample)
    assert.deepStrictEqual(yield* batched.rows, yield* single.rows, sample)
    assert.deepStrictEqual(yield* batched.end(ends), yield* single.end(ends), sample)
    assert.deepStrictEqual(yield* batched.rows, yield* single.rows, sample)
  }
  for (const user of [...batched.users, ...single.users]) {
    assert.strictEqual(yield* breachesOf(user), 0)
  }
})

describeLive("a batch of creates or ends", walletStores, (it, store) => {
  it.effect(
    "writes and returns the same as its calls one after another",
    () =>
      Effect.gen(function* () {
        const samples = fc.sample(fc.array(round, { minLength: 1, maxLength: 3 }), {
          numRuns: store === "embedded" ? 20 : 12
        })
        for (const rounds of samples) yield* same(rounds)
      }),
    120_000
  )
})
