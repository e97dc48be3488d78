/**
 * Creates with SQL the history of a service that has run for a month: finished tasks at an even pace, each with two
 * events, four deliveries with an attempt, and ten ledger entries (for the task, and for a reservation on which six calls
 * drew). The busiest user has one task in 27.
 */
import { Redacted, Effect } from "effect"
import { Client } from "pg"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"

/** The number of days before today; the first of them are beyond the retention of the log. */
export const historyDays = 31
export const historyUsers = 20_000
const entriesPerTask = 10
/** One in this many of a user's tasks fails. */
const failsEvery = 32
const price = 50_000
const callCost = 1000
const reserved = 20_000
const calls = 6
/**
 * The fill factor of pages of ended tasks. The service fills half of a page with new tasks, which grow in place until
 * they end. If ended tasks filled only half a page, every page would have room, and new tasks would go to pages in
 * any order.
 */
const endedFill = 72
const topUp = 1_000_000_000_000_000

/** Not partitioned; filled without indexes. */
const wholeTables = ["tasks", "vendor_attempts", "wallet_entries", "usage_days"]
/** The tables with a partition per day, with the column that determines it. */
export const dayTables = {
  events: "created_at",
  deliveries: "created_at",
  delivery_attempts: "started_at",
  calls: "created_at"
}

const settledAfter = (block: string) =>
  `${topUp} - (${block}) * ${price + calls * callCost}::bigint + (${block}) / ${failsEvery} * ${price}`

/** Ids as the service creates them: the time, followed by a substitute for the random bits. */
const hexOf = (millis: string) => `lpad(to_hex(${millis}), 12, '0')`
const uuidOf = (millis: string, hash: string) =>
  `(${hexOf(millis)} || '7' || substr(${hash}, 1, 3) || '8' || substr(${hash}, 5, 15))::uuid`
const textIdOf = (prefix: string, millis: string, hash: string) =>
  `'${prefix}' || ${hexOf(millis)} || '7' || substr(${hash}, 1, 19)`

const people = `
  CREATE TEMP TABLE people AS
  SELECT u, ${uuidOf("1750000000000 + u", "h")} AS user_id, ${textIdOf("key_", "1750000000000 + u", "h")} AS key,
    ${textIdOf("whe_", "1750000000000 + u", "h")} AS hook, ${textIdOf("whe_", "1750000100000 + u", "h")} AS hook2
  FROM (SELECT u::bigint, md5('user ' || u) AS h FROM generate_series(0, ${historyUsers - 1}) u) s;
  ALTER TABLE people ADD PRIMARY KEY (u);
  CREATE TEMP TABLE counts AS SELECT u, 0::bigint AS tasks FROM people;
  INSERT INTO users (id, email, created_at)
    SELECT user_id, 'user' || u || '@example.com', now() - interval '${historyDays + 1} days' FROM people;
  INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at)
    SELECT key, user_id, sha256(convert_to(key, 'UTF8')), 'sk-...', 'key', '{inference}', now() FROM people;
  INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    SELECT unnest(ARRAY[hook, hook2]), user_id, 'https://receiver.example.com/hook',
      '{task.created,task.succeeded,task.failed}', true, '\\x00', 'whsec_...', now(), now() FROM people;
  INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, created_at,
      state_after, threshold_after)
    SELECT user_id, 1, 'top_up', ${topUp}, ${topUp}, 0, 'first ' || u, now() - interval '${historyDays + 1} days',
      'NORMAL', 1000000000 FROM people`

/** The tasks of one day, each with its number among those of its user. */
const dayTasks = (day: string, perDay: number) => `
  CREATE TEMP TABLE made AS
  SELECT p.*, s.at, s.ms, s.h, ${uuidOf("s.ms", "s.h")} AS id, md5(s.h) AS trace,
    c.tasks + row_number() OVER (PARTITION BY s.u ORDER BY s.ms) AS k
  FROM (
    SELECT t.u, t.at, (extract(epoch FROM t.at) * 1000)::bigint AS ms, md5('${day} ' || n) AS h
    FROM (
      SELECT n, floor(${historyUsers} * power(random(), 3))::bigint AS u,
        timestamptz '${day}' + floor(n * 86380000.0 / ${perDay}) * interval '1 millisecond' AS at
      FROM generate_series(0, ${perDay - 1}) n
    ) t
  ) s JOIN people p USING (u) JOIN counts c USING (u);
  ALTER TABLE made ADD COLUMN failed boolean;
  UPDATE made SET failed = k % ${failsEvery} = 0;
  UPDATE counts c SET tasks = c.tasks + m.n FROM (SELECT u, count(*) AS n FROM made GROUP BY u) m WHERE m.u = c.u;
  ANALYZE made`

const link = `'https://gateway.example.com/artifacts/art_' || h || '?expires=1795000000&signature=' || trace || h`
const errorOf = `'{"code":3001,"title":"The vendor refused the task","detail":"the prompt was not accepted"}'`

const tasks = `
  INSERT INTO tasks (id, user_id, api_key_id, vendor, model, action, result_kind, status, body, sandbox, price, captured,
    result, error, trace_id, created_at, started_at, updated_at)
  SELECT id, user_id, key, 'fal', 'text-to-image-preview', 'generation', 'images',
    CASE WHEN failed THEN 'failed' ELSE 'completed' END,
    jsonb_build_object('prompt', 'A turtle that swims in a calm sea at sunset, seen from below, number ' || h,
      'n', 1, 'seed', ms % 100000, 'size', '1024x1024'),
    false, ${price}, CASE WHEN failed THEN 0 ELSE ${price} END,
    CASE WHEN NOT failed THEN jsonb_build_array(${link}) END, CASE WHEN failed THEN ${errorOf}::jsonb END,
    trace, at, at, at + interval '8 seconds'
  FROM made ORDER BY ms;
  INSERT INTO vendor_attempts
    (task_id, n, vendor, account_id, body_hash, state, handle, started_at, answered_at)
  SELECT id, 1, 'fal', 'fal-queue@default', decode(h || trace, 'hex'), 'submitted',
    jsonb_build_object('id', h, 'status_url', 'https://queue.example.com/requests/' || h || '/status'),
    at, at + interval '1 second'
  FROM made ORDER BY ms`

/** Ten entries per task, in order of time for each user. */
const entries = `
  INSERT INTO wallet_entries (user_id, seq, kind, amount, settled_after, held_after, operation_id, subject_id, note,
    trace_id, created_at)
  SELECT m.user_id, ${entriesPerTask} * (m.k - 1) + 1 + e.n, e.kind, e.amount,
    ${settledAfter("m.k - 1")} - greatest(0, e.charged - CASE WHEN m.failed THEN ${price} ELSE 0 END), e.held,
    e.kind || ':' || subject, subject, CASE WHEN e.n BETWEEN 4 AND 9 THEN m.reservation::text END,
    CASE WHEN e.n IN (1, 2) OR e.n BETWEEN 4 AND 9 THEN m.trace END, m.at + e.n * interval '1 millisecond'
  FROM (SELECT *, ${uuidOf("ms + 2500", "reverse(h)")} AS reservation FROM made) m
  CROSS JOIN LATERAL (
    VALUES (1, 'hold', ${price}, 0, ${price}),
      (2, CASE WHEN m.failed THEN 'release' ELSE 'capture' END, ${price}, ${price}, 0),
      (3, 'hold', ${reserved}, ${price}, ${reserved}),
      ${Array.from({ length: calls }, (_, n) => `(${4 + n}, 'capture', ${callCost}, ${price + (n + 1) * callCost}, ${reserved - (n + 1) * callCost})`).join(", ")},
      (10, 'release', ${reserved - calls * callCost}, ${price + calls * callCost}, 0)
  ) e (n, kind, amount, charged, held)
  CROSS JOIN LATERAL (
    SELECT CASE WHEN e.n <= 2 THEN m.id WHEN e.n IN (3, 10) THEN m.reservation
      ELSE ${uuidOf("m.ms + 3000 + e.n", "(substr('456789', e.n - 3, 1) || m.h)")} END AS subject
  ) i
  ORDER BY m.ms, e.n`

const info = (state: string, at: string) =>
  `'{"id":"' || id || '","status":"${state}","created_at":"' || at || '","updated_at":"' || ${at} || '"'`
const eventBody = (type: string, at: string, payload: string) =>
  `convert_to('{"id":"' || event || '","type":"${type}","created_at":"' || ${at} ||
    '","data":{"vendor":"fal","model_name":"text-to-image-preview","payload":{"task_info":' || ${payload} || '}}}', 'UTF8')`

/** Into tables that are attached to their parents and indexed once they are full. */
const eventsOf = (part: (table: string) => string) => `
  CREATE TEMP TABLE sent AS
  SELECT user_id, id, h, trace, at, at AS event_at, ms AS event_ms, failed, hook, hook2,
    ${textIdOf("evt_", "ms", "trace")} AS event, 'task.created' AS type FROM made
  UNION ALL
  SELECT user_id, id, h, trace, at, at + interval '8 seconds', ms + 8000, failed, hook, hook2,
    ${textIdOf("evt_", "ms + 8000", "reverse(trace)")},
    CASE WHEN failed THEN 'task.failed' ELSE 'task.succeeded' END FROM made
  ORDER BY 7;
  INSERT INTO ${part("events")} (id, created_at, user_id, type, task_id, body, trace_id)
  SELECT event, event_at, user_id, type, id, CASE type
      WHEN 'task.created' THEN ${eventBody("task.created", "at", `${info("pending", "at")} || '}'`)}
      WHEN 'task.failed' THEN ${eventBody("task.failed", "event_at", `${info("failed", "event_at")} || ',"error":' || ${errorOf} || '}'`)}
      ELSE ${eventBody("task.succeeded", "event_at", `${info("completed", "event_at")} || '},"images":["' || ${link} || '"]'`)}
    END, trace
  FROM sent ORDER BY event_ms;
  CREATE TEMP TABLE going AS
  SELECT 'whd_' || ${hexOf("s.event_ms")} || substr(md5(s.event || h.n), 1, 20) AS id, s.event_at, s.event_ms, s.user_id,
    h.hook, s.event, s.type, s.id AS task, CASE WHEN s.h LIKE '00%' THEN 'failed' ELSE 'succeeded' END AS status
  FROM sent s CROSS JOIN LATERAL (VALUES (1, s.hook), (2, s.hook2)) h (n, hook);
  INSERT INTO ${part("deliveries")} (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, task_id,
    status, attempts, updated_at)
  SELECT id, event_at, user_id, hook, event, event_at, type, task, status, 1, event_at + interval '100 milliseconds'
  FROM going ORDER BY event_ms;
  INSERT INTO ${part("delivery_attempts")} (delivery_id, seq, endpoint_id, due_at, started_at, ended_at, status, failure,
    detail, answer, remote_address)
  SELECT id, 1, hook, event_at, event_at + interval '20 milliseconds', event_at + interval '100 milliseconds',
    CASE status WHEN 'failed' THEN 500 ELSE 200 END, CASE status WHEN 'failed' THEN 'status' END, null, '{"ok":true}',
    '203.0.113.7'
  FROM going ORDER BY event_ms;
  DROP TABLE sent, going`

/** The receipt of one in six calls, because all would be 30 million. */
const receipts = (part: string) => `
  INSERT INTO ${part} (id, user_id, api_key_id, vendor, model, route, account_id, outcome, http_status, held, captured,
    usage, sandbox, trace_id, created_at, ended_at)
  SELECT ${uuidOf("ms + 3004", "('4' || h)")}, user_id, key, 'openai', 'gpt-4.1-mini', '/v1/chat/completions', 'default',
    'settled', 200, ${reserved}, ${callCost}, '{"inputTokens": 120, "outputTokens": 400, "cachedInputTokens": 0}',
    false, trace, at, at + interval '1 second'
  FROM made ORDER BY ms`

const usage = (day: string) => `
  INSERT INTO usage_days (user_id, day, api_key_id, vendor, model, sandbox, requests, input_tokens, input_cached_tokens,
    output_tokens, images, videos, audios, seconds, credits, tasks)
  SELECT user_id, date '${day}', key, 'fal', 'text-to-image-preview', false, count(*), 0, 0, 0, count(*), 0, 0, 0,
    ${price} * count(*), count(*) FROM made WHERE NOT failed GROUP BY user_id, key
  UNION ALL
  SELECT user_id, date '${day}', key, 'openai', 'gpt-4.1-mini', false, ${calls} * count(*), ${calls} * 120 * count(*), 0,
    ${calls} * 400 * count(*), 0, 0, 0, 0, ${calls * callCost} * count(*), 0 FROM made GROUP BY user_id, key`

const wallets = `
  INSERT INTO wallets (user_id, settled, entry_count)
    SELECT p.user_id, ${settledAfter("c.tasks")}, 1 + ${entriesPerTask} * c.tasks FROM people p JOIN counts c USING (u);
  INSERT INTO wallet_audits (user_id, seq, settled, held, chained, drifting, checked_at)
    SELECT user_id, entry_count, settled, 0, true, false, now() FROM wallets;
  INSERT INTO wallet_audit_rounds (finished_at, wallets) SELECT now(), count(*) FROM wallets`

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(0)} s`

/** Drops the indexes of a table. Returns the statements that create them again. */
const dropIndexes = async (db: Client, table: string): Promise<ReadonlyArray<string>> => {
  const { rows } = await db.query<{ drop: string; make: string }>(
    `SELECT format('ALTER TABLE %I DROP CONSTRAINT %I', $1::text, conname) AS drop,
        format('ALTER TABLE %I ADD CONSTRAINT %I %s', $1::text, conname, pg_get_constraintdef(oid)) AS make
      FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'
      UNION ALL
      SELECT format('DROP INDEX %I', indexrelid::regclass), pg_get_indexdef(indexrelid)
      FROM pg_index WHERE indrelid = $1::regclass AND NOT indisprimary`,
    [table]
  )
  for (const { drop } of rows) await db.query(drop)
  return rows.map(({ make }) => make)
}

const fillDay = async (db: Client, day: string, perDay: number) => {
  const part = (table: string) => `${table}_${day.replaceAll("-", "")}`
  const next = new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10)
  await db.query(dayTasks(day, perDay))
  for (const table of Object.keys(dayTables)) {
    await db.query(
      `CREATE TABLE ${part(table)} (LIKE ${table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
        WITH (fillfactor = ${table === "deliveries" ? 50 : 100})`
    )
  }
  for (const text of [tasks, entries, eventsOf(part), receipts(part("calls")), usage(day)]) {
    await db.query(text)
  }
  for (const table of Object.keys(dayTables)) {
    await db.query(
      `ALTER TABLE ${table} ATTACH PARTITION ${part(table)} FOR VALUES FROM ('${day}') TO ('${next}')`
    )
  }
  await db.query("DROP TABLE made")
}

/** Also for a store that was filled before the last migration. */
export const migrate = async (url: string) => {
  const store = layerPostgres({ url: Redacted.make(url), timeouts: "endless" })
  await Effect.runPromise(Effect.scoped(Effect.provide(Migrations.migrate(), store)))
}

/** Migrates an empty database, and creates users and this many tasks with everything that belongs to them. */
export const fill = async (url: string, count: number) => {
  const began = performance.now()
  await migrate(url)
  const db = new Client(url)
  await db.connect()
  // Without triggers, because the data are correct by construction; the wallet audit checks them afterwards
  await db.query("SET session_replication_role = replica")
  await db.query("BEGIN")
  const makeIndexes: Array<string> = []
  for (const table of wholeTables) {
    makeIndexes.push(...(await dropIndexes(db, table)))
    // A table that is truncated in the transaction that fills it writes no WAL
    await db.query(`TRUNCATE ${table}`)
  }
  await db.query(`ALTER TABLE tasks SET (fillfactor = ${endedFill})`)
  await db.query(people)
  const perDay = Math.ceil(count / historyDays)
  const today = Math.floor(Date.now() / 86_400_000) * 86_400_000
  for (let n = count > 0 ? historyDays : 0; n > 0; n -= 1) {
    const day = new Date(today - n * 86_400_000).toISOString().slice(0, 10)
    await fillDay(db, day, perDay)
    console.log(`${day} is filled after ${seconds(began)}`)
  }
  await db.query(wallets)
  await db.query("ALTER TABLE tasks SET (fillfactor = 50)")
  for (const text of makeIndexes) {
    await db.query(text)
    console.log(`${seconds(began)}: ${text.slice(0, 100)}`)
  }
  await db.query("COMMIT")
  await db.query("SET session_replication_role = origin")
  await db.query("VACUUM (ANALYZE, PARALLEL 0)")
  console.log(`filled after ${seconds(began)}`)
  await db.end()
}
