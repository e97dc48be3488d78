/** An invariant of the store: a statement that finds violations, with up to three examples. */
export interface Invariant {
  readonly name: string
  /** Returns a column `what`, one row per violation. */
  readonly sql: string
  /** The migration from which it applies. Not checked where an earlier release has charged. */
  readonly since?: string
}

const terminal = "('completed', 'failed')"

/** Each statement reads one snapshot, so that it also holds while the service works. */
export const always: ReadonlyArray<Invariant> = [
  {
    name: "a wallet is what its ledger says, and holds what its open holds say",
    sql: `WITH e AS (
        SELECT user_id, count(*) AS n,
          sum(CASE kind WHEN 'top_up' THEN amount WHEN 'adjustment' THEN amount WHEN 'capture' THEN -amount
            WHEN 'late_charge' THEN -amount ELSE 0 END) AS settled,
          sum(amount) FILTER (WHERE kind = 'late_charge') AS late,
          sum(CASE kind WHEN 'hold' THEN amount WHEN 'capture' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS held
        FROM wallet_entries GROUP BY 1
      ), h AS (SELECT user_id, sum(amount) AS held FROM holds GROUP BY 1)
      SELECT format('wallet %s: %s/%s, ledger %s/%s, holds %s', w.user_id, w.settled, w.held, e.settled, e.held, h.held) AS what
      FROM wallets w LEFT JOIN e USING (user_id) LEFT JOIN h USING (user_id)
      WHERE w.settled <> coalesce(e.settled, 0) OR w.held <> coalesce(e.held, 0) OR w.held <> coalesce(h.held, 0)
        OR w.entry_count <> coalesce(e.n, 0) OR w.settled + coalesce(e.late, 0) < w.held OR w.held < 0`
  },
  {
    name: "a hold is closed once, and what is captured and released is what was held",
    sql: `WITH closed AS (
        SELECT coalesce(note::uuid, subject_id) AS id, sum(amount) FILTER (WHERE kind = 'hold') AS held,
          coalesce(sum(amount) FILTER (WHERE kind <> 'hold'), 0) AS given,
          count(*) FILTER (WHERE kind = 'hold' AND slice_to IS NULL) AS opened,
          count(*) FILTER (WHERE kind <> 'hold') AS ends
        FROM wallet_entries WHERE subject_id IS NOT NULL AND kind <> 'late_charge' GROUP BY 1
      )
      SELECT format('hold %s: held %s, given %s', c.id, c.held, c.given) AS what
      FROM closed c LEFT JOIN holds h ON h.id = c.id
      WHERE c.opened <> 1 OR CASE WHEN h.id IS NULL THEN c.ends = 0 OR c.given <> c.held ELSE c.ends <> 0 END`
  },
  {
    name: "a task is terminal exactly when it has no hold and no run",
    sql: `SELECT format('task %s is %s, hold %s, run %s', t.id, t.status, h.id IS NOT NULL, r.task_id IS NOT NULL) AS what
      FROM tasks t LEFT JOIN holds h ON h.id = t.id LEFT JOIN runs r ON r.task_id = t.id
      WHERE (t.status IN ${terminal}) = (h.id IS NOT NULL) OR (t.status IN ${terminal}) = (r.task_id IS NOT NULL)`
  },
  {
    name: "a task has one event of its create, and one of its end when it has ended",
    sql: `SELECT format('task %s is %s: %s', t.id, t.status, e.types) AS what
      FROM tasks t LEFT JOIN (
        SELECT task_id, string_agg(type, ',' ORDER BY type) AS types FROM events WHERE task_id IS NOT NULL GROUP BY 1
      ) e ON e.task_id = t.id
      WHERE e.types IS DISTINCT FROM CASE t.status WHEN 'completed' THEN 'task.created,task.succeeded'
        WHEN 'failed' THEN 'task.created,task.failed' ELSE 'task.created' END`
  },
  {
    name: "a task is charged what it captured, and a failed one nothing",
    sql: `SELECT format('task %s: %s, ledger %s', t.id, t.captured, e.amount) AS what
      FROM tasks t LEFT JOIN wallet_entries e ON e.subject_id = t.id AND e.kind = 'capture'
      WHERE coalesce(t.captured, 0) <> coalesce(e.amount, 0) OR (t.status = 'failed' AND coalesce(t.captured, 0) > 0)`
  },
  {
    name: "a receipt says what the ledger charged, and each charge has one",
    sql: `SELECT format('call %s: receipt %s, ledger %s', coalesce(c.id, e.subject_id), c.captured, e.amount) AS what
      FROM (SELECT subject_id, sum(amount) AS amount FROM wallet_entries e
        WHERE kind IN ('capture', 'late_charge') AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = e.subject_id) GROUP BY 1) e
      FULL JOIN (SELECT id, sum(captured) AS captured, count(*) AS n FROM calls GROUP BY 1) c ON c.id = e.subject_id
      WHERE coalesce(c.captured, 0) <> coalesce(e.amount, 0) OR c.n > 1`
  },
  {
    name: "the rollup of usage is what the ledger captured",
    since: "0006_usage",
    sql: `SELECT format('user %s on %s: usage %s, ledger %s', user_id, day, u.credits, l.captured) AS what
      FROM (SELECT user_id, (created_at AT TIME ZONE 'UTC')::date AS day, sum(amount) AS captured
        FROM wallet_entries WHERE kind IN ('capture', 'late_charge') GROUP BY 1, 2) l
      FULL JOIN (SELECT user_id, day, sum(credits) AS credits FROM usage_days GROUP BY 1, 2) u USING (user_id, day)
      WHERE coalesce(l.captured, 0) <> coalesce(u.credits, 0)`
  },
  {
    name: "the rollup of usage counts completed tasks and settled calls",
    since: "0006_usage",
    sql: `SELECT format('user %s: %s tasks of %s, %s calls of %s', user_id, u.tasks, t.n, u.calls, c.n) AS what
      FROM (SELECT user_id, sum(tasks) AS tasks, sum(requests - tasks) AS calls FROM usage_days GROUP BY 1) u
      FULL JOIN (SELECT user_id, count(*) AS n FROM tasks WHERE status = 'completed' GROUP BY 1) t USING (user_id)
      FULL JOIN (SELECT user_id, count(*) AS n FROM calls WHERE outcome = 'settled' GROUP BY 1) c USING (user_id)
      WHERE coalesce(u.tasks, 0) <> coalesce(t.n, 0) OR coalesce(u.calls, 0) <> coalesce(c.n, 0)`
  },
  {
    name: "the rollup by hour is the rollup by day",
    sql: `SELECT format('user %s on %s: hours %s, days %s', user_id, day, h.sums, d.sums) AS what
      FROM (SELECT user_id, (hour AT TIME ZONE 'UTC')::date AS day, (sum(requests), sum(credits), sum(errors), durations_sum(durations)) AS sums
        FROM usage_hours GROUP BY 1, 2) h
      FULL JOIN (SELECT user_id, day, (sum(requests), sum(credits), sum(errors), durations_sum(durations)) AS sums
        FROM usage_days GROUP BY 1, 2) d USING (user_id, day)
      WHERE h.sums IS DISTINCT FROM d.sums`
  },
  {
    name: "the rollup counts failed tasks and unsettled calls as errors, and the durations of the others",
    sql: `SELECT format('user %s: %s errors of %s', user_id, u.errors, r.errors) AS what
      FROM (SELECT user_id, sum(errors) AS errors, durations_sum(durations) AS durations FROM usage_days GROUP BY 1) u
      FULL JOIN (
        SELECT user_id, count(*) FILTER (WHERE is_error) AS errors,
          durations_sum(durations_of(created_at, ended_at)) FILTER (WHERE is_counted) AS durations
        FROM (
          SELECT user_id, created_at, updated_at AS ended_at, status = 'failed' AS is_error,
            status = 'completed' OR captured > 0 AS is_counted FROM tasks WHERE status IN ('completed', 'failed')
          UNION ALL
          SELECT user_id, created_at, ended_at, outcome <> 'settled', outcome = 'settled' FROM calls
        ) o GROUP BY 1
      ) r USING (user_id)
      WHERE (coalesce(u.errors, 0), u.durations) IS DISTINCT FROM (coalesce(r.errors, 0), r.durations)`
  },
  {
    name: "a budget is what its key captured and holds, and within its limit",
    since: "0006_usage",
    sql: `SELECT format('key %s: spent %s held %s of %s, captured %s, holds %s', b.api_key_id, b.spent, b.held, k.spend_limit, s.spent, h.held) AS what
      FROM key_budgets b JOIN api_keys k ON k.id = b.api_key_id
      LEFT JOIN (SELECT api_key_id, sum(credits) AS spent FROM usage_days GROUP BY 1) s USING (api_key_id)
      LEFT JOIN (
        SELECT coalesce(h.api_key_id, t.api_key_id, h.call ->> 'key') AS api_key_id, sum(h.amount) AS held
        FROM holds h LEFT JOIN tasks t ON t.id = h.id WHERE h.budget_epoch IS NOT NULL GROUP BY 1
      ) h USING (api_key_id)
      LEFT JOIN (
        SELECT api_key_id, sum(captured) AS late FROM calls WHERE charged_late GROUP BY 1
      ) l USING (api_key_id)
      WHERE k.spend_limit IS NOT NULL AND (b.spent <> coalesce(s.spent, 0) OR b.held <> coalesce(h.held, 0)
        OR b.spent + b.held > k.spend_limit + coalesce(l.late, 0))`
  },
  {
    name: "each event has one delivery for each endpoint that subscribes",
    sql: `SELECT format('event %s %s: %s', e.id, e.type, w.id) AS what
      FROM events e JOIN webhook_endpoints w ON w.user_id = e.user_id AND e.type = ANY (w.events)
      LEFT JOIN (SELECT event_id, endpoint_id, count(*) AS n FROM deliveries GROUP BY 1, 2) d
        ON d.event_id = e.id AND d.endpoint_id = w.id
      WHERE d.n > 1 OR d.n IS NULL AND e.created_at > w.created_at + interval '1 minute'
        AND (w.deleted_at IS NULL OR e.created_at < w.deleted_at - interval '1 minute')`
  },
  {
    name: "a delivery is pending exactly when it is in the queue",
    sql: `SELECT format('delivery %s is %s, queued %s', d.id, d.status, q.id IS NOT NULL) AS what
      FROM deliveries d LEFT JOIN delivery_queue q ON q.id = d.id
      WHERE (d.status = 'pending') <> (q.id IS NOT NULL)`
  },
  {
    name: "a task has at most one submitted job",
    sql: `SELECT format('task %s: %s jobs', task_id, count(*)) AS what FROM vendor_attempts
      WHERE state = 'submitted' GROUP BY task_id HAVING count(*) > 1`
  },
  {
    name: "an account runs no more jobs than it has slots",
    sql: `SELECT format('%s: %s of %s', slot_key, count(*), min(slot_max)) AS what FROM runs
      WHERE slot_held GROUP BY slot_key HAVING count(*) > min(slot_max)`
  }
]

/** Further invariants, whose breach lasts only seconds because the task that breaks them ends. */
export const brief: ReadonlyArray<Invariant> = [
  {
    name: "no task of a deleted user runs after the first pass of its erasure",
    sql: `SELECT format('task %s of user %s', t.id, u.id) AS what
      FROM users u JOIN tasks t ON t.user_id = u.id JOIN runs r ON r.task_id = t.id
      WHERE u.erased_at IS NOT NULL OR u.erasure_due_at > u.deleted_at`
  }
]

/** Invariants that hold once all faults are over and nothing is running. */
export const atRest: ReadonlyArray<Invariant> = [
  { name: "no task is left", sql: "SELECT format('run %s', task_id) AS what FROM runs" },
  {
    name: "nothing is held",
    sql: "SELECT format('%s hold %s of %s since %s', kind, id, amount, created_at) AS what FROM holds"
  },
  {
    name: "no delivery is claimed or overdue",
    sql: `SELECT format('delivery %s due %s owner %s', id, due_at, owner) AS what FROM delivery_queue
      WHERE owner IS NOT NULL OR due_at < clock_timestamp() - interval '20 seconds'`
  },
  {
    name: "no account is left with a lease of permits that lies far ahead",
    sql: `SELECT format('%s until %s', key, next_at) AS what FROM rate_leases
      WHERE next_at > clock_timestamp() + interval '5 minutes'`
  },
  {
    name: "a deleted user has no delivery that waits, no task that ended later, and none with its contents",
    sql: `SELECT format('user %s, deleted at %s: %s %s', u.id, u.deleted_at, x.kind, x.id) AS what FROM users u
      CROSS JOIN LATERAL (
        SELECT 'delivery' AS kind, d.id FROM deliveries d WHERE d.user_id = u.id AND d.status NOT IN ('succeeded', 'failed', 'skipped')
        UNION ALL
        SELECT 'late task', t.id::text FROM tasks t WHERE t.user_id = u.id AND t.updated_at > u.deleted_at + interval '2 minutes'
        UNION ALL
        SELECT 'task', t.id::text FROM tasks t WHERE t.user_id = u.id AND (t.body <> 'null' OR t.result IS NOT NULL)
        UNION ALL
        SELECT 'erasure', u.erasure_due_at::text WHERE u.erasure_due_at < clock_timestamp() - interval '1 minute'
      ) x
      WHERE u.deleted_at IS NOT NULL`
  }
]

/** Invariants that hold after the last pass of every erasure. docs/reference/privacy.md#deletion-of-a-user */
export const erased: ReadonlyArray<Invariant> = [
  {
    name: "the last pass of an erasure leaves nothing personal",
    sql: `SELECT format('user %s, deleted at %s: %s %s', u.id, u.deleted_at, x.kind, x.id) AS what FROM users u
      CROSS JOIN LATERAL (
        SELECT 'erasure due' AS kind, u.erasure_due_at::text AS id WHERE u.erased_at IS NULL
        UNION ALL
        SELECT 'task', t.id::text FROM tasks t WHERE t.user_id = u.id
          AND (t.body <> 'null' OR t.result IS NOT NULL OR t.metadata IS NOT NULL OR t.error ->> 'detail' <> '')
        UNION ALL
        SELECT 'media', a.id::text FROM artifacts a WHERE a.user_id = u.id
        UNION ALL
        SELECT 'file', f.id FROM files f WHERE f.user_id = u.id
        UNION ALL
        SELECT 'body of event', e.id FROM events e JOIN deliveries d ON d.event_id = e.id WHERE e.user_id = u.id AND e.body <> ''
        UNION ALL
        SELECT 'answer to delivery', a.delivery_id FROM delivery_attempts a JOIN deliveries d ON d.id = a.delivery_id
          WHERE d.user_id = u.id AND (a.answer IS NOT NULL OR a.remote_address IS NOT NULL)
        UNION ALL
        SELECT 'idempotency key', i.key FROM idempotency_keys i WHERE i.user_id = u.id
        UNION ALL
        SELECT 'stored response', m.key FROM manage_idempotency_keys m WHERE m.caller = u.id::text
        UNION ALL
        SELECT 'key', k.id FROM api_keys k WHERE k.user_id = u.id AND (k.revoked_at IS NULL OR k.name <> '')
        UNION ALL
        SELECT 'endpoint', w.id FROM webhook_endpoints w WHERE w.user_id = u.id AND (w.deleted_at IS NULL OR w.url <> '')
        UNION ALL
        SELECT 'address in audit entry', a.id FROM audit_entries a WHERE a.actor_user_id = u.id AND a.ip_address IS NOT NULL
      ) x
      WHERE u.deleted_at IS NOT NULL`
  }
]
