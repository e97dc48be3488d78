import { PgClient } from "@effect/sql-pg"
import { DateTime, Effect, Layer, Option, Schema } from "effect"
import { randomUUID } from "node:crypto"
import * as Credits from "../../src/domain/Credits.ts"
import { ApiKeyId, EventId, TaskId, UserId } from "../../src/domain/Ids.ts"
import { CallStore } from "../../src/passthrough/CallStore.ts"
import type { CallBatch, CallEnd, CallStart } from "../../src/passthrough/CallStore.ts"
import { ReservationStore } from "../../src/passthrough/reservations/ReservationStore.ts"
import type {
  DrawnCall,
  ReservationBatch,
  ReservationGrant,
  ReservationSize
} from "../../src/passthrough/reservations/ReservationStore.ts"
import { TaskStore } from "../../src/tasks/TaskStore.ts"
import type { Acceptance, Finish } from "../../src/tasks/TaskStore.ts"
import * as TaskStoreLive from "../../src/tasks/TaskStoreLive.ts"
import { UserStore } from "../../src/users/UserStore.ts"
import { WalletStore } from "../../src/wallet/WalletStore.ts"

/** The stores that change wallets. */
export const walletStores = Layer.mergeAll(
  ReservationStore.layer,
  CallStore.layer,
  TaskStoreLive.layer,
  UserStore.layer,
  WalletStore.layer
)

export const credits = (amount: number): Credits.Credits =>
  Credits.make(BigInt(Math.round(amount * 1_000_000)))

const utf8 = new TextEncoder()

export const newEvent = (type = "task.created") => {
  const id = EventId.make(`evt_${randomUUID().replaceAll("-", "")}`)
  return { id, body: utf8.encode(JSON.stringify({ id, type })) }
}

export const newTaskId = () => TaskId.make(randomUUID())

/** A user with a wallet of `amount` credits. */
export const newWallet = Effect.fnUntraced(function* (amount: number) {
  const users = yield* UserStore
  const wallets = yield* WalletStore
  const userId = UserId.make(randomUUID())
  const now = yield* DateTime.now
  yield* users.create({
    id: userId,
    email: `${userId}@example.com`,
    name: null,
    passwordHash: null,
    now
  })
  if (amount > 0) {
    yield* wallets.add({
      userId,
      kind: "top_up",
      amount: credits(amount),
      operationId: `top_up:${userId}:first`,
      note: null,
      traceId: "",
      now
    })
  }
  return userId
})

/** A webhook endpoint that is subscribed to `events`. */
export const subscribe = Effect.fnUntraced(function* (
  userId: UserId,
  events: ReadonlyArray<string> = ["balance.low"],
  enabled = true
) {
  const sql = yield* PgClient.PgClient
  const now = DateTime.toDateUtc(yield* DateTime.now)
  yield* sql`
    INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    VALUES (${`whe_${randomUUID()}`}, ${userId}, 'https://example.com', ${[...events]}::text[], ${enabled},
      ${new Uint8Array(1)}, '', ${now}, ${now})`
})

/** Accepts a task, or several together with `others`. */
export const accept = Effect.fnUntraced(function* (
  userId: UserId,
  price: number,
  over: Partial<Acceptance> = {},
  others: ReadonlyArray<TaskId> = []
) {
  const tasks = yield* TaskStore
  const now = yield* DateTime.now
  const taskId = over.taskId ?? newTaskId()
  const first: Acceptance = {
    taskId,
    userId,
    apiKeyId: null,
    runningMax: 0,
    vendor: "alibaba",
    model: "text-to-image-max",
    action: "generation",
    resultKind: "images",
    body: { prompt: "a turtle" },
    sandbox: true,
    price: credits(price),
    deadlineAt: DateTime.add(now, { hours: 1 }),
    traceId: "0".repeat(32),
    queue: "submits",
    now,
    event: newEvent(),
    idempotency: Option.none(),
    ...over
  }
  const outcome = yield* tasks.accept([
    first,
    ...others.map((id) => ({
      ...first,
      taskId: id,
      event: { ...first.event, id: newEvent().id },
      idempotency: Option.none()
    }))
  ])
  return { taskId, outcome }
})

/** Ends a task: settles `captured` credits or, if that is `undefined`, fails the task. */
export const finish = Effect.fnUntraced(function* (
  taskId: TaskId,
  captured: number | undefined,
  over: Partial<Finish> = {}
) {
  const tasks = yield* TaskStore
  return yield* tasks.finish({
    taskId,
    epoch: Option.none(),
    outcome:
      captured === undefined
        ? { status: "failed", error: { code: 4004, title: "Cancelled", detail: "" } }
        : { status: "completed", result: ["https://example.com/1"], captured: credits(captured) },
    event: newEvent("task.succeeded"),
    alert: () => newEvent("balance.low"),
    throttleSeconds: 3600,
    now: yield* DateTime.now,
    ...over
  })
})

export const callKeyOf = (userId: UserId) => ApiKeyId.make(`key_${userId}`)

/** A user with a wallet and a key that can make calls. */
export const newCaller = Effect.fnUntraced(function* (amount: number) {
  const users = yield* UserStore
  const userId = yield* newWallet(amount)
  yield* users.createKey({
    id: callKeyOf(userId),
    userId,
    keyHash: Buffer.from(userId),
    preview: "",
    name: "",
    scopes: ["inference"],
    expiresAt: null,
    now: yield* DateTime.now
  })
  return userId
})

export const callStart = (
  userId: UserId,
  amount: number,
  id = randomUUID() as string,
  key = callKeyOf(userId)
): CallStart => ({
  id,
  user: userId,
  key,
  rotation: 0,
  amount: credits(amount),
  trace: "0123456789abcdef0123456789abcdef",
  vendor: "openai",
  model: "gpt-4o",
  route: "POST /v1/chat/completions",
  sandbox: false,
  catalogId: null
})

export const callEnd = (
  { id, user }: Pick<CallStart, "id" | "user">,
  captured: number
): CallEnd => ({
  id,
  user,
  captured: credits(captured),
  outcome: captured > 0 ? "settled" : "released",
  status: 200,
  account: "openai:0123456789",
  usage: { inputTokens: 20, outputTokens: 40, counted: false }
})

/** Ends and starts calls in one transaction. */
export const writeCalls = Effect.fnUntraced(function* (batch: Partial<CallBatch>) {
  const calls = yield* CallStore
  return yield* calls.write({
    ends: [],
    raises: [],
    starts: [],
    processId: "prc_test",
    alert: () => newEvent("balance.low"),
    throttleSeconds: 3600,
    now: yield* DateTime.now,
    ...batch
  })
})

/** The target size of a key's reservation: for running calls and for future ones. */
export const reservation = (userId: UserId, needs: number, extra = 0) => ({
  key: callKeyOf(userId),
  user: userId,
  hold: randomUUID() as string,
  rotation: 0,
  needs: credits(needs),
  extra: credits(extra)
})

/** The store's response that grants everything that is requested. */
export const grantAll = (
  sizes: ReadonlyArray<ReservationSize>,
  over: Partial<ReservationGrant> = {}
): ReadonlyArray<ReservationGrant> =>
  sizes.map(({ extra, key, needs }) => ({
    key,
    granted: credits(Number(needs + extra) / 1e6),
    available: credits(1_000_000),
    alive: true,
    expiresAt: null,
    left: null,
    ...over
  }))

/** An ended call that drew on its key's reservation. */
export const drawnCall = (start: CallStart, captured: number): DrawnCall => ({
  start,
  begunAt: 1_800_000_000_000,
  end: callEnd(start, captured)
})

/** Settles drawn calls and sizes reservations in one transaction. */
export const writeReservations = Effect.fnUntraced(function* (batch: Partial<ReservationBatch>) {
  const store = yield* ReservationStore
  return yield* store.write({
    sizes: [],
    ended: [],
    processId: "prc_test",
    alert: () => newEvent("balance.low"),
    throttleSeconds: 3600,
    now: yield* DateTime.now,
    ...batch
  })
})

const Count = Schema.Array(Schema.Struct({ n: Schema.Int }))

/**
 * The number of violations of docs/reference/wallet.md#invariants, for one wallet or all; must be 0. Rechecks `settled
 * ≥ held ≥ 0` (except for late charges) and the sums, although constraints enforce some of them. Also checks that the
 * usage rollup agrees with the ledger, the tasks and the receipts.
 */
export const breachesOf = Effect.fnUntraced(function* (userId: UserId | undefined) {
  const sql = yield* PgClient.PgClient
  const mine = userId === undefined ? sql`true` : sql`user_id = ${userId}`
  const rows = yield* sql`
    WITH sums AS (
      SELECT w.*, (SELECT coalesce(sum(CASE kind WHEN 'top_up' THEN amount WHEN 'adjustment' THEN amount
          WHEN 'capture' THEN -amount WHEN 'late_charge' THEN -amount ELSE 0 END), 0)
          FROM wallet_entries e WHERE e.user_id = w.user_id) AS ledger,
        (SELECT coalesce(sum(amount), 0) FROM wallet_entries e
          WHERE e.user_id = w.user_id AND e.kind = 'late_charge') AS late,
        (SELECT coalesce(sum(CASE kind WHEN 'hold' THEN amount WHEN 'capture' THEN -amount
          WHEN 'release' THEN -amount ELSE 0 END), 0) FROM wallet_entries e WHERE e.user_id = w.user_id) AS held_ledger,
        (SELECT coalesce(sum(amount), 0) FROM holds h WHERE h.user_id = w.user_id) AS open,
        (SELECT count(*) FROM wallet_entries e WHERE e.user_id = w.user_id) AS entries
      FROM wallets w WHERE ${mine}
    ), closed AS (
      -- Calls that were drawn on a reservation are captures of its hold
      SELECT coalesce(note::uuid, subject_id) AS subject_id, sum(amount) FILTER (WHERE kind = 'hold') AS held,
        coalesce(sum(amount) FILTER (WHERE kind = 'capture'), 0) AS captured,
        coalesce(sum(amount) FILTER (WHERE kind = 'release'), 0) AS released,
        count(*) FILTER (WHERE kind = 'hold' AND slice_to IS NULL) AS opened,
        count(*) FILTER (WHERE kind IN ('capture', 'release')) AS ends
      FROM wallet_entries WHERE subject_id IS NOT NULL AND kind <> 'late_charge' AND ${mine} GROUP BY 1
    ), mine AS (SELECT * FROM tasks WHERE ${mine})
    SELECT (
      (SELECT count(*) FROM sums WHERE NOT (settled + late >= held AND held >= 0)) +
      -- A late charge is the cost of its call, which was lost before, or the part of it that was not held
      (SELECT count(*) FROM wallet_entries e WHERE kind = 'late_charge' AND ${mine} AND NOT EXISTS (
        SELECT FROM calls c WHERE c.user_id = e.user_id AND c.id = e.subject_id AND c.charged_late
          AND c.outcome = 'settled' AND c.captured = e.amount + coalesce((SELECT h.amount
            FROM wallet_entries h WHERE h.subject_id = e.subject_id AND h.kind = 'capture'), 0))) +
      (SELECT count(*) FROM sums WHERE settled <> ledger OR held <> held_ledger OR held <> open OR entry_count <> entries) +
      (SELECT count(*) FROM closed c WHERE opened <> 1 OR captured > held OR
        CASE WHEN EXISTS (SELECT 1 FROM holds h WHERE h.id = c.subject_id)
          THEN ends <> 0 ELSE ends = 0 OR captured + released <> held END) +
      (SELECT count(*) FROM mine t WHERE (t.status IN ('completed', 'failed'))
        = EXISTS (SELECT 1 FROM holds h WHERE h.id = t.id)) +
      (SELECT count(*) FROM mine t WHERE (t.status IN ('completed', 'failed'))
        = EXISTS (SELECT 1 FROM runs r WHERE r.task_id = t.id)) +
      (SELECT count(*) FROM mine t WHERE coalesce(t.captured, 0)
        <> coalesce((SELECT amount FROM wallet_entries e WHERE e.subject_id = t.id AND e.kind = 'capture'), 0)) +
      (SELECT count(*) FROM holds h WHERE kind = 'task' AND ${mine}
        AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = h.id)) +
      (SELECT count(*) FROM mine t WHERE (SELECT count(*) FROM events e WHERE e.task_id = t.id AND e.type LIKE 'task.%')
        <> CASE WHEN t.status IN ('completed', 'failed') THEN 2 ELSE 1 END) +
      -- The rollup of each day is the sum of its captures
      (SELECT count(*) FROM (
          SELECT user_id, (created_at AT TIME ZONE 'UTC')::date AS day, sum(amount) AS captured
          FROM wallet_entries WHERE kind IN ('capture', 'late_charge') AND ${mine} GROUP BY 1, 2
        ) l FULL JOIN (
          SELECT user_id, day, sum(credits) AS credits FROM usage_days WHERE ${mine} GROUP BY 1, 2
        ) u USING (user_id, day)
        WHERE coalesce(l.captured, 0) <> coalesce(u.credits, 0)) +
      -- And its counts are those of the tasks, and of the receipts that are still there
      (SELECT count(*) FROM (
          SELECT user_id, day, model, sum(n) AS n, sum(done) AS done, sum(tokens) AS tokens, sum(results) AS results FROM (
            SELECT user_id, (updated_at AT TIME ZONE 'UTC')::date AS day, model, 1 AS n, 1 AS done, 0 AS tokens,
              jsonb_array_length(result) AS results
            FROM mine WHERE status = 'completed'
            UNION ALL
            SELECT user_id, (ended_at AT TIME ZONE 'UTC')::date, coalesce(model, ''), 1, 0,
              coalesce((usage ->> 'inputTokens')::bigint + (usage ->> 'outputTokens')::bigint, 0), 0
            FROM calls WHERE outcome = 'settled' AND ${mine}
          ) s GROUP BY 1, 2, 3
        ) s LEFT JOIN (
          SELECT user_id, day, model, sum(requests) AS n, sum(tasks) AS done, sum(input_tokens + output_tokens) AS tokens,
            sum(images + videos + audios) AS results
          FROM usage_days WHERE ${mine} GROUP BY 1, 2, 3
        ) u USING (user_id, day, model)
        WHERE (s.n, s.done, s.tokens, s.results) IS DISTINCT FROM (u.n, u.done, u.tokens, u.results)) +
      -- Each hour has the errors and durations of the tasks and receipts that ended in it. Retention drops receipts
      -- before hours: hours before the oldest receipt may have more
      (SELECT count(*) FROM (
          SELECT user_id, date_trunc('hour', ended_at) AS hour, api_key_id, vendor, model, count(*) FILTER (WHERE is_error) AS errors,
            durations_sum(durations_of(created_at, ended_at)) FILTER (WHERE is_counted) AS durations
          FROM (
            SELECT user_id, updated_at AS ended_at, created_at, coalesce(api_key_id, '') AS api_key_id,
              coalesce(candidates -> candidate ->> 'vendor', vendor) AS vendor,
              coalesce(candidates -> candidate ->> 'model', model) AS model, status = 'failed' AS is_error,
              status = 'completed' OR captured > 0 AS is_counted
            FROM mine WHERE status IN ('completed', 'failed')
            UNION ALL
            SELECT user_id, ended_at, created_at, coalesce(api_key_id, ''), vendor, coalesce(model, ''),
              outcome <> 'settled', outcome = 'settled' FROM calls WHERE ${mine}
          ) o GROUP BY 1, 2, 3, 4, 5
        ) s FULL JOIN (
          SELECT user_id, hour, api_key_id, vendor, model, sum(errors) AS errors, durations_sum(durations) AS durations
          FROM usage_hours WHERE ${mine} GROUP BY 1, 2, 3, 4, 5
        ) u USING (user_id, hour, api_key_id, vendor, model)
        WHERE (coalesce(s.errors, 0), s.durations) IS DISTINCT FROM (coalesce(u.errors, 0), u.durations)
          AND (s.hour IS NOT NULL OR u.hour >= (SELECT min(date_trunc('hour', ended_at)) FROM calls))) +
      -- The rollup by day is that of its hours
      (SELECT count(*) FROM (
          SELECT user_id, (hour AT TIME ZONE 'UTC')::date AS day, api_key_id, vendor, model, sandbox, sum(requests) AS requests,
            sum(input_tokens + input_cached_tokens + output_tokens) AS tokens, sum(images + videos + audios + seconds) AS results,
            sum(credits) AS credits, sum(tasks) AS tasks, sum(errors) AS errors, durations_sum(durations) AS durations
          FROM usage_hours WHERE ${mine} GROUP BY 1, 2, 3, 4, 5, 6
        ) h FULL JOIN usage_days u USING (user_id, day, api_key_id, vendor, model, sandbox)
        WHERE ${mine}
          AND (h.requests, h.tokens, h.results, h.credits, h.tasks, h.errors, h.durations) IS DISTINCT FROM
            (u.requests, u.input_tokens + u.input_cached_tokens + u.output_tokens, u.images + u.videos + u.audios + u.seconds,
              u.credits, u.tasks, u.errors, u.durations))
    )::int AS n`
  const [count] = yield* Schema.decodeUnknownEffect(Count)(rows)
  return count?.n
})

export const breaches = breachesOf(undefined)

/** The ledger of a user, oldest first. */
export const ledgerOf = Effect.fnUntraced(function* (userId: UserId) {
  const wallets = yield* WalletStore
  const { rows } = yield* wallets.search(userId, { before: Option.none(), limit: 10_000 })
  return rows.toReversed()
})

export const walletOf = Effect.fnUntraced(function* (userId: UserId) {
  return Option.getOrThrow(yield* (yield* WalletStore).find(userId))
})

export const receiptOf = Effect.fnUntraced(function* ({ id, user }: CallStart) {
  const { rows } = yield* (yield* CallStore).search(user, { limit: 100 })
  return rows.find((row) => row.id === id)
})

const Bodies = Schema.Array(Schema.Struct({ body: Schema.Uint8Array }))

/**
 * The `balance.low` events of a user, oldest first. Under a TestClock several have the same `created_at`, and a row's
 * place in the table does not follow insertion, so ties are ordered by transaction.
 */
export const balanceAlerts = Effect.fnUntraced(function* (userId: UserId) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`SELECT body FROM events WHERE user_id = ${userId} AND type = 'balance.low'
    ORDER BY created_at, age(xmin) DESC`
  return (yield* Schema.decodeUnknownEffect(Bodies)(rows)).map(({ body }) =>
    JSON.parse(new TextDecoder().decode(body))
  )
})

/** The `available_balance` of each of these events. */
export const alertedBalances = (userId: UserId) =>
  Effect.map(balanceAlerts(userId), (events) =>
    events.map((it) => it.data.payload.available_balance)
  )
