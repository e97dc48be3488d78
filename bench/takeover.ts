/**
 * Kills with -9 one of three processes on one Postgres that has many tasks in hand and as many claimed deliveries.
 * Measures when the other processes take the first and the last of them, and how evenly. SQL creates the rows, and
 * triggers log them.
 *
 *   node bench/takeover.ts [tasks and deliveries, such as 100,20000]
 */
import { fork } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Client } from "pg"
import { makeAuthority } from "../test/support/certificates.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { freePort } from "../test/support/spawnService.ts"
import { builtService, startFlags } from "./startFlags.ts"

const counts = (process.argv[2] ?? "100,20000").split(",").map(Number)
const token = "operator-token-of-the-bench"
const path = "/vendors/fal/v1/bench/generation"
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** The most tasks of a queue that a process has in hand. */
const perQueue = 500
/** Few enough deliveries per endpoint and minute to stay below its limit. */
const perEndpoint = 100

const catalog = {
  add: [
    {
      label: "text-to-image-preview",
      vendor: "fal",
      model: "bench",
      adapter: "fal-queue",
      upstreamModel: "fal-ai/bench",
      input: { fields: { n: "num_images", seed: "seed" } }
    }
  ]
}

const folder = await mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))
const children: Array<ChildProcess> = []
const start = (program: string, words: ReadonlyArray<string>) => {
  const child = fork(here(program), words, { stdio: ["ignore", "inherit", "inherit", "ipc"] })
  children.push(child)
  return new Promise<{ port: number }>((resolve) =>
    child.once("message", (value) => resolve(value as { port: number }))
  )
}

const call = async (origin: string, place: string, key: string, body?: unknown) => {
  const response = await fetch(`${origin}${place}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  const text = await response.text()
  if (response.status >= 300) throw new Error(`${response.status} ${text}`)
  return JSON.parse(text)
}

const prepare = `
  CREATE UNLOGGED TABLE taken (kind text, id text, owner text, at timestamptz);
  CREATE INDEX ON taken (id);
  CREATE FUNCTION log_taken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF tg_table_name = 'runs' THEN
      INSERT INTO taken VALUES (
        CASE WHEN new.owner IS NULL THEN 'tasks, free' ELSE 'tasks, taken' END,
        new.task_id, new.owner, clock_timestamp());
    ELSE
      INSERT INTO taken VALUES (
        CASE WHEN new.owner IS NULL THEN 'deliveries, free' ELSE 'deliveries, taken' END,
        new.id, new.owner, clock_timestamp());
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER log_taken AFTER UPDATE ON runs FOR EACH ROW
    WHEN (new.owner IS DISTINCT FROM old.owner) EXECUTE FUNCTION log_taken();
  CREATE TRIGGER log_taken AFTER UPDATE ON delivery_queue FOR EACH ROW
    WHEN (new.owner IS DISTINCT FROM old.owner) EXECUTE FUNCTION log_taken()`

/** Copies of a task at the vendor that the owner has in hand, in many queues. */
const ownedTasks = (owner: string, count: number) => `
  WITH made AS MATERIALIZED (SELECT gen_random_uuid() AS id, n FROM generate_series(1, ${count}) n),
  source AS MATERIALIZED (SELECT r.task_id FROM runs r JOIN vendor_attempts a USING (task_id)
    WHERE a.state = 'submitted' LIMIT 1),
  task AS (
    INSERT INTO tasks SELECT (t).* FROM (
      SELECT jsonb_populate_record(t, jsonb_build_object('id', m.id)) AS t
      FROM tasks t, made m WHERE t.id = (SELECT task_id FROM source)) c
  ), attempt AS (
    INSERT INTO vendor_attempts SELECT (a).* FROM (
      SELECT jsonb_populate_record(a, jsonb_build_object('task_id', m.id)) AS a
      FROM vendor_attempts a, made m WHERE a.task_id = (SELECT task_id FROM source)) c
  )
  INSERT INTO runs SELECT (r).* FROM (
    SELECT jsonb_populate_record(r, jsonb_build_object('task_id', m.id, 'owner', '${owner}',
      'epoch', 1, 'due_at', now(), 'queue', 'bench ' || m.n / ${perQueue})) AS r
    FROM runs r, made m WHERE r.task_id = (SELECT task_id FROM source)) c`

/** Claimed deliveries of the owner, for copies of an endpoint. */
const claimedDeliveries = (owner: string, count: number) => `
  WITH endpoint AS MATERIALIZED (SELECT * FROM webhook_endpoints WHERE id NOT LIKE 'whe_copy%' LIMIT 1),
  endpoints AS (
    INSERT INTO webhook_endpoints (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    SELECT 'whe_copy${count}_' || n, user_id, url, events, true, secret, secret_preview, now(), now()
    FROM endpoint, generate_series(0, ${Math.ceil(count / perEndpoint)}) n
  ), new AS MATERIALIZED (
    SELECT n, e.user_id, date_trunc('milliseconds', now()) AS at, 'evt_' || md5(n::text || random()::text) AS event,
      time_sorted_id('whd_', date_trunc('milliseconds', now())) AS id,
      'whe_copy${count}_' || n / ${perEndpoint} AS endpoint
    FROM endpoint e, generate_series(1, ${count}) n
  ), ev AS (
    INSERT INTO events (id, created_at, user_id, type, body)
    SELECT event, at, user_id, 'task.succeeded', '{}' FROM new
  ), d AS (
    INSERT INTO deliveries
      (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
    SELECT id, at, user_id, endpoint, event, at, 'task.succeeded', 'pending', at FROM new
  )
  INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at, seq, owner, claimed_at)
  SELECT id, at, endpoint, at, 1, '${owner}', now() FROM new`

const figures = `
  WITH first AS (
    SELECT DISTINCT ON (t.kind, t.id) t.* FROM taken t
    WHERE t.at > $1 AND t.id IN (SELECT id FROM made) ORDER BY t.kind, t.id, t.at
  )
  SELECT kind, count(*)::int AS n,     extract(epoch from min(at) - $1::timestamptz)::float8 AS first,
    extract(epoch from percentile_disc(0.5) WITHIN GROUP (ORDER BY at) - $1::timestamptz)::float8 AS half,
    extract(epoch from max(at) - $1::timestamptz)::float8 AS last,
    (SELECT json_object_agg(right(owner, 4), k) FROM (
      SELECT owner, count(*) AS k FROM first f WHERE f.kind = first.kind AND owner IS NOT NULL GROUP BY 1) each) AS shares
  FROM first GROUP BY kind ORDER BY kind`

const run = async () => {
  const authority = await makeAuthority()
  const issued = await authority.issue()
  const receiver = await start("receiver.ts", [JSON.stringify({ ...issued, delayMillis: 0 })])
  const vendor = await start("jobVendor.ts", [])
  await writeFile(join(folder, "catalog.json"), JSON.stringify(catalog))
  await writeFile(join(folder, "ca.pem"), authority.ca)
  const admin = new URL(await serverUrl(folder))
  const db = new Client(admin.href)
  await db.connect()

  const startGateway = async () => {
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const before = new Date()
    const child = fork(builtService(), [], {
      execArgv: startFlags,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: admin.href,
        DATA_DIR: folder,
        HOST: "127.0.0.1",
        PORT: `${port}`,
        BASE_URL: origin,
        ADMIN_TOKEN: token,
        MASTER_KEY: Buffer.alloc(32, 1).toString("base64"),
        EGRESS_ALLOW: "127.0.0.1",
        NODE_EXTRA_CA_CERTS: join(folder, "ca.pem"),
        CATALOG_FILE: join(folder, "catalog.json"),
        FAL_API_KEY: "a:b",
        FAL_BASE_URL: `http://127.0.0.1:${vendor.port}`,
        LOG_LEVEL: "Error"
      }
    })
    children.push(child)
    while (
      !(await fetch(`${origin}/readyz`).then(
        (it) => it.ok,
        () => false
      ))
    )
      await pause(100)
    const { rows } = await db.query(
      "SELECT id FROM processes WHERE started_at > $1 ORDER BY started_at DESC LIMIT 1",
      [new Date(before.getTime() - 1000)]
    )
    return { child, id: String(rows[0].id), origin }
  }

  const gateways = [await startGateway(), await startGateway(), await startGateway()]
  const { origin } = gateways[0]!
  const user = await call(origin, "/manage/v1/users", token, { email: "bench@example.com" })
  await call(origin, `/manage/v1/users/${user.id}/top-ups`, token, { amount: "900000000" })
  const { key } = await call(origin, `/manage/v1/users/${user.id}/api-keys`, token, {
    name: "bench",
    scopes: ["inference", "manage"]
  })
  await call(origin, "/manage/v1/webhook-endpoints", key, {
    url: `https://127.0.0.1:${receiver.port}/hook`,
    events: ["balance.low"]
  })
  await call(origin, path, key, { prompt: "wait", n: 1 })
  await pause(2000)
  await db.query(prepare)

  for (const count of counts) {
    const victim = gateways.pop()!
    await pause(3000)
    await db.query("DROP TABLE IF EXISTS made")
    await db.query(ownedTasks(victim.id, count))
    await db.query(claimedDeliveries(victim.id, count))
    await db.query(`
      CREATE UNLOGGED TABLE made AS SELECT task_id::text AS id FROM runs WHERE queue LIKE 'bench %'
      UNION ALL SELECT id FROM delivery_queue WHERE owner = '${victim.id}'`)
    victim.child.kill("SIGKILL")
    const { rows: killed } = await db.query("SELECT clock_timestamp() AS at")
    const at = killed[0].at
    for (let second = 0; second < 90; second += 1) {
      await pause(1000)
      const { rows } = await db.query(
        `SELECT count(DISTINCT id)::int AS n FROM taken
         WHERE at > $1 AND owner IS NOT NULL AND id IN (SELECT id FROM made)`,
        [at]
      )
      if (rows[0].n >= 2 * count) break
    }
    const { rows } = await db.query(figures, [at])
    for (const row of rows) {
      const seconds = (value: number) => value.toFixed(2)
      console.log(
        `${count} ${row.kind}: ${row.n} after ${seconds(row.first)} s (first), ${seconds(row.half)} s (half), ` +
          `${seconds(row.last)} s (last); shares ${JSON.stringify(row.shares)}`
      )
    }
    await db.query("DELETE FROM runs WHERE task_id::text IN (SELECT id FROM made)")
    gateways.unshift(await startGateway())
  }
  await db.end()
}

try {
  await run()
} finally {
  for (const child of children) child.kill("SIGKILL")
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
