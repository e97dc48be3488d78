/** Shared by the webhook benchmarks: a database, a receiver, and the sending half of the service. */
import { NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Result } from "effect"
import { fork } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { AppConfig } from "../src/config/Config.ts"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { parseEgressAllow } from "../src/domain/network/EgressAllow.ts"
import { EgressGuard } from "../src/egress/EgressGuard.ts"
import { stores } from "../src/Gateway.ts"
import { Drain } from "../src/process/Drain.ts"
import { Process } from "../src/process/heartbeat/Process.ts"
import { Secrets } from "../src/process/secrets/Secrets.ts"
import { Rescuer } from "../src/tasks/running/Rescuer.ts"
import * as WorkNotifierLive from "../src/tasks/running/WorkNotifierLive.ts"
import { ManageReplays } from "../src/users/ManageReplays.ts"
import { ManageReplayStore } from "../src/users/ManageReplayStore.ts"
import { DeliveryScheduler } from "../src/webhooks/DeliveryScheduler.ts"
import { WebhookDispatcher } from "../src/webhooks/WebhookDispatcher.ts"
import { WebhookSender } from "../src/webhooks/WebhookSender.ts"
import { makeAuthority } from "../test/support/certificates.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import { body, secret } from "./measures.ts"
import { cpuMicros } from "./processes.ts"

/** A separate Postgres, or `DATABASE_URL`. */
export const database = Effect.gen(function* () {
  if (process.env.DATABASE_URL !== undefined) return process.env.DATABASE_URL
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), `gateway-postgres-${process.pid}-`))),
    (path) =>
      Effect.promise(async () => {
        await stopServer(path)
        await rm(path, { recursive: true, force: true })
      })
  )
  return yield* Effect.promise(() => serverUrl(folder))
})

/** A receiver in a separate process. */
export const receiver = Effect.fnUntraced(function* (delayMillis = 0) {
  const authority = yield* Effect.promise(makeAuthority)
  const issued = yield* Effect.promise(() => authority.issue())
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      fork(fileURLToPath(new URL("receiver.ts", import.meta.url)), [
        JSON.stringify({ ...issued, delayMillis })
      ])
    ),
    (process) => Effect.sync(() => process.kill("SIGKILL"))
  )
  const ask = () =>
    new Promise<Message>((resolve) => child.once("message", resolve as (message: unknown) => void))
  const { port } = yield* Effect.promise(ask)
  const arrivals = Effect.promise(async () => {
    const response = ask()
    child.send("arrivals")
    return new Map((await response).arrivals)
  })
  return {
    url: `https://127.0.0.1:${port}/hook`,
    ca: authority.ca,
    /** Arrival of each delivery since the last call, as Unix time in milliseconds. */
    arrivals,
    cpuMicros: () => cpuMicros(child.pid ?? 0)
  }
})

interface Message {
  readonly port?: number
  readonly arrivals?: ReadonlyArray<readonly [string, number]>
}

/** CPU time of all processes of a Postgres on this machine, in microseconds. */
export const postgresMicros = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql`SELECT pid FROM pg_stat_activity`
  return rows.reduce((sum, row) => sum + cpuMicros(Number(row["pid"])), 0)
})

/** The stores and the sending half of webhooks, as the service composes them. */
export const sending = (url: string, ca: string) => {
  const config = AppConfig.layerOf({
    DATABASE_URL: url,
    ADMIN_TOKEN: "operator-token-of-the-bench",
    MASTER_KEY: Buffer.alloc(32, 7).toString("base64")
  })
  const guard = EgressGuard.layer({ allow: Result.getOrThrow(parseEgressAllow("127.0.0.1")) })
  return Layer.mergeAll(DeliveryScheduler.layerLoop, Rescuer.layerLoop).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Rescuer.layer.pipe(Layer.provideMerge(DeliveryScheduler.layer)),
        Layer.provide(ManageReplays.layer, ManageReplayStore.layer)
      )
    ),
    Layer.provideMerge(WorkNotifierLive.layer),
    Layer.provideMerge(WebhookDispatcher.layer),
    Layer.provideMerge(Layer.merge(Drain.layer, Process.layer)),
    Layer.provideMerge(Secrets.layer),
    Layer.provideMerge(stores),
    Layer.provideMerge(WebhookSender.layer({ ca }).pipe(Layer.provide(guard))),
    Layer.provideMerge(Migrations.layer()),
    Layer.provideMerge(layerPostgres({ url: Redacted.make(url) })),
    Layer.provideMerge(Layer.mergeAll(config, NodeServices.layer)),
    Layer.orDie
  )
}

/** Creates endpoints for the receiver, all of one user. */
export const makeEndpoints = Effect.fnUntraced(function* (count: number, url: string, first = 1) {
  const sql = yield* PgClient.PgClient
  const secrets = yield* Secrets
  const sealed = secrets.encrypt(secret)
  yield* sql`INSERT INTO users (id, email, created_at)
    VALUES ('019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f', 'bench', now()) ON CONFLICT DO NOTHING`
  yield* sql`TRUNCATE delivery_queue, deliveries, delivery_attempts, events, webhook_endpoints`
  yield* sql`
    INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    SELECT 'whe_' || n, '019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f', ${url}, '{task.succeeded}', true,
      ${sealed}::bytea, 'whsec_...', now(), now() FROM generate_series(${first}::int, ${first + count - 1}::int) n`
})

/** Queues deliveries, one endpoint after the other, due evenly within this many seconds. */
export const queue = Effect.fnUntraced(function* (
  deliveries: number,
  endpoints: number,
  startSeconds: number,
  spreadSeconds: number,
  first = 1
) {
  const sql = yield* PgClient.PgClient
  yield* sql`
    SELECT partitions_maintain(name, col, date_trunc('milliseconds', now()), 1, now() - interval '30 days')
    FROM (VALUES ('events', 'created_at'), ('deliveries', 'created_at'), ('delivery_attempts', 'started_at')) t (name, col)`
  yield* sql`
    WITH new AS MATERIALIZED (
      SELECT n, date_trunc('milliseconds', now()) AS at,
        'evt_' || md5(n::text || random()::text) AS event,
        time_sorted_id('whd_', date_trunc('milliseconds', now())) AS id,
        'whe_' || (n % ${endpoints}::int + ${first}::int) AS endpoint
      FROM generate_series(0, ${deliveries}::int - 1) n
    ), e AS (
      INSERT INTO events (id, created_at, user_id, type, body)
      SELECT event, at, '019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f', 'task.succeeded', ${body}::bytea FROM new
    ), d AS (
      INSERT INTO deliveries
        (id, created_at, user_id, endpoint_id, event_id, event_created_at, event_type, status, updated_at)
      SELECT id, at, '019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f', endpoint, event, at, 'task.succeeded', 'pending', at
      FROM new
    )
    INSERT INTO delivery_queue (id, created_at, endpoint_id, due_at)
    SELECT id, at, endpoint, date_trunc('milliseconds', at + interval '1 second' * (
      ${startSeconds}::float8 + n * ${spreadSeconds}::float8 / ${deliveries}::float8)) FROM new`
  yield* sql`VACUUM ANALYZE`.unprepared
})

/** Waits until nothing is queued. */
export const drained = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  while (true) {
    const rows = yield* sql`SELECT 1 FROM delivery_queue LIMIT 1`
    if (rows.length === 0) return
    yield* Effect.sleep("20 millis")
  }
})
