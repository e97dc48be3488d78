import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { layerEmbedded, layerPostgres } from "../../../src/db/Database.ts"
import type { Database } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { splitStatements } from "../../../src/db/SqlStatements.ts"
import { EndpointId, TaskId, UserId } from "../../../src/domain/Ids.ts"
import { CallStore } from "../../../src/passthrough/CallStore.ts"
import { ReservationStore } from "../../../src/passthrough/reservations/ReservationStore.ts"
import { embeddedHash, embeddedTemplate } from "../../../src/testing/StoreTemplates.ts"
import { WalletStore } from "../../../src/wallet/WalletStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { catalog, contents } from "../../support/catalog.ts"
import { advance, callWith, eventually, layerGateway } from "../../support/gateway.ts"
import { embeddedDatabase, freshDatabase, postgresDatabase } from "../../support/stores.ts"
import {
  accept,
  breaches,
  callEnd,
  finish,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

const dump = new URL("../../support/schema-0017.sql", import.meta.url)
const statements = splitStatements(readFileSync(dump, "utf8"))
const dumpHash = () => embeddedHash().update(readFileSync(dump)).digest("hex").slice(0, 16)

/** The key of its user, and the path of its tasks. */
const apiKey = "sk-NAyO1ieImAJ7u9IgPlnFcF3hBNqWffyQB7wZuGth3udjTb"
const models = "/vendors/alibaba/v1/text-to-image-max"

/** The moment at which the process of the dump was killed, and a minute later. */
const killedAt = "2026-11-22T10:36:31Z"
const later = DateTime.makeUnsafe("2026-11-22T10:37:31Z")

const load = Effect.gen(function* () {
  const sql = yield* SqlClient
  // As pg_dump has it: functions come before their tables
  yield* sql`SET LOCAL check_function_bodies = off`.unprepared
  for (const statement of statements) yield* sql.unsafe(statement).unprepared
}).pipe((loading) => Effect.flatMap(SqlClient, (sql) => sql.withTransaction(loading)))

/** Databases as the last program before `0001_initial` left them. */
const former: Readonly<Record<string, Layer.Layer<Database>>> = {
  postgres: Layer.effectDiscard(load).pipe(
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(freshDatabase(), (url) => layerPostgres({ url: Redacted.make(url.href) }))
      )
    ),
    Layer.orDie
  ),
  embedded: Layer.unwrap(
    Effect.map(
      Effect.suspend(() => embeddedTemplate(dumpHash(), load)),
      (template) => layerEmbedded({ dataDir: "memory", durable: false, template })
    )
  ).pipe(Layer.orDie)
}
const fresh = { postgres: postgresDatabase, embedded: embeddedDatabase }

const adopted = (database: Layer.Layer<Database>) =>
  Layer.effectDiscard(Migrations.migrate()).pipe(Layer.provideMerge(database), Layer.orDie)

type Rows = ReadonlyMap<string, ReadonlyArray<Record<string, unknown>>>

/** The expected rows after the adoption. */
const renamed = (before: Rows): Rows => {
  const tables: Record<string, string> = {
    manage_answers: "manage_idempotency_keys",
    vendor_turns: "rate_leases"
  }
  const columns: Record<string, string> = {
    "manage_answers.answer": "response",
    "runs.slot": "slot_key",
    "runs.called": "callback_received"
  }
  /** Of the migrations since then. */
  const added: Record<string, Record<string, unknown>> = {
    wallets: { alert_withheld: false, key_limits: false, last_entry: null },
    wallet_audit_rounds: { drifting_budgets: 0, budgets_checked_at: null },
    holds: { budget_epoch: null, catalog_id: null },
    api_keys: {
      spend_limit: null,
      spend_reset: null,
      allowed_models: null,
      rate_limit_per_minute: null,
      concurrent_tasks: null,
      disabled_at: null,
      is_console: false,
      rotations: 0,
      previous_key_hash: null,
      previous_key_until: null,
      user_rate_limit_per_minute: null
    },
    runs: {
      due_at: "1970-01-01T00:00:00+00:00",
      queue: "submits",
      account_id: null,
      slot_max: null,
      inputs: null,
      level: 0
    },
    tasks: {
      catalog_id: null,
      metadata: null,
      deleted_at: null,
      candidates: null,
      candidate: null
    },
    calls: { catalog_id: null, request_id: null, first_token_ms: null, alias: null },
    vendor_turns: { spacing: null, minute: null, used: 0 },
    vendor_faults: { account_id: null, model: null, at: null, http_status: null, remedy: null },
    users: {
      deleted_at: null,
      erased_at: null,
      erasure_due_at: null,
      disabled_at: null,
      session_epoch: 0,
      oidc_subject: null,
      rate_limit_per_minute: null,
      concurrent_tasks: null
    }
  }
  const row = (table: string, values: Record<string, unknown>) =>
    Object.fromEntries(
      Object.entries({ ...values, ...added[table] }).map(([column, value]) => [
        columns[`${table}.${column}`] ?? column,
        table === "holds" && value === "allowance" ? "reservation" : value
      ])
    )
  const kept = [...before].map(
    ([table, rows]) => [tables[table] ?? table, rows.map((values) => row(table, values))] as const
  )
  const made = [
    "account_affinities",
    "account_days",
    "account_drains",
    "audit_entries",
    "callback_times",
    "catalog_adoptions",
    "catalogs",
    "duties",
    "key_budgets",
    "retention_marks",
    "sessions",
    "sign_in_links",
    "usage_days",
    "vendor_accounts",
    "withheld_alerts"
  ]
  const charged = (before.get("wallets") ?? []).filter(
    (wallet) => Number(wallet["entry_count"]) > 0
  )
  return new Map<string, ReadonlyArray<Record<string, unknown>>>([
    ...kept,
    ["usage_rebuilds", charged.map(({ user_id }) => ({ user_id, next_day: null }))],
    ...made.map((table) => [table, []] as const)
  ])
}

/** Sorted independently of names, without the rows that the migrations write about themselves. */
const sorted = (rows: Rows) =>
  [...rows]
    .filter(([table]) => !table.startsWith("schema_"))
    .map(([table, values]) => [
      table,
      values.map((value) => JSON.stringify(sortKeys(value))).sort()
    ])
    .sort()

const sortKeys = (value: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))

const schemaState = Effect.gen(function* () {
  const sql = yield* SqlClient
  return {
    catalog: yield* catalog,
    migrations: yield* sql`SELECT id, name, sha256 FROM schema_migrations ORDER BY id`,
    functions: yield* sql`SELECT name, sha256, earlier FROM schema_functions ORDER BY name`
  }
})

/** Tasks that have not ended, oldest first: three were submitted, the last was only accepted. */
const unfinished = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql<{ taskId: string }>`SELECT task_id FROM runs ORDER BY task_id`
  return rows.map(({ taskId }) => TaskId.make(taskId))
})

/** A step of what the upgrade has left to do; returns whether all was done. */
const rebuildNext = Effect.flatMap(SqlClient, (sql) =>
  Effect.map(
    sql<{ done: boolean }>`SELECT NOT usage_rebuild_next AS done FROM usage_rebuild_next()`,
    ([row]) => row!.done
  )
)

/** Days of users whose usage is not what the ledger has captured. */
const uncounted = Effect.flatMap(
  SqlClient,
  (sql) => sql`
    SELECT coalesce(e.user_id, d.user_id) AS user_id, coalesce(e.day, d.day) AS day FROM (
      SELECT user_id, (created_at AT TIME ZONE 'UTC')::date AS day, sum(amount) AS credits FROM wallet_entries
      WHERE kind = 'capture' GROUP BY 1, 2
    ) e FULL JOIN (
      SELECT user_id, day, sum(credits) AS credits FROM usage_days GROUP BY 1, 2
    ) d ON d.user_id = e.user_id AND d.day = e.day
    WHERE coalesce(e.credits, 0) <> coalesce(d.credits, 0)`
)

for (const [store, database] of Object.entries(former)) {
  describe(`a database at the former migration 0017 (${store})`, () => {
    it.live("is adopted with every row, and has the schema of a new one", () =>
      Effect.gen(function* () {
        const before = yield* contents
        for (const [table, rows] of before) {
          // It is unlogged, and the template was not closed
          if (store === "embedded" && table === "request_buckets") continue
          assert.isAbove(rows.length, 0, `no row of ${table}`)
        }
        const applied = yield* Migrations.migrate()
        const migrations = applied.filter((one) => !one.startsWith("functions/"))
        assert.deepStrictEqual(migrations, [
          "0001_initial",
          "0002_withheld_alerts",
          "0003_account_affinities",
          "0004_due_tasks",
          "0005_key_budgets",
          "0006_usage",
          "0007_audit_and_erasure",
          "0008_sessions",
          "0009_catalogs_and_drains",
          "0010_owners",
          "0011_vendor_accounts",
          "0012_callback_times",
          "0013_duties",
          "0014_first_token",
          "0015_task_metadata",
          "0016_deleted_videos",
          "0017_aliases",
          "0018_usage_tasks",
          "0019_room_for_updates",
          "0020_list_hashes_and_withheld_alerts",
          "0021_place_of_the_last_entry",
          "0022_traces_by_period"
        ])
        assert.deepStrictEqual(sorted(yield* contents), sorted(renamed(before)))
        const state = yield* schemaState
        assert.isAbove(state.catalog.length, 300)
        assert.deepStrictEqual(
          state,
          yield* Effect.provide(schemaState, fresh[store === "embedded" ? store : "postgres"], {
            local: true
          })
        )
        assert.deepStrictEqual(yield* Migrations.migrate(), [])
      }).pipe(Effect.provide(database))
    )

    it.live("works on: wallets, tasks, calls and deliveries", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* Effect.repeat(rebuildNext, { until: (done) => done })
        assert.strictEqual(yield* breaches, 0)
        const [submitted, slotless, , pending] = yield* unfinished
        const ended = yield* finish(submitted!, 7.5, { epoch: Option.some(1) })
        assert.strictEqual(ended._tag, "Finished")
        assert.strictEqual((yield* finish(submitted!, 7.5))._tag, "Fenced")
        assert.strictEqual(
          (yield* finish(slotless!, 7.5, { epoch: Option.some(0) }))._tag,
          "Fenced",
          "an earlier owner"
        )
        assert.strictEqual((yield* finish(pending!, undefined))._tag, "Finished")
        const [wallet] = yield* sql<{ userId: string }>`
          SELECT user_id FROM wallets WHERE entry_count > 0`
        const userId = UserId.make(wallet!.userId)
        assert.strictEqual((yield* accept(userId, 7.5)).outcome._tag, "Accepted")

        const calls = yield* CallStore
        const orphans = yield* calls.orphans(later, later, 10)
        assert.lengthOf(orphans, 1)
        yield* writeCalls({ ends: orphans.map(({ id }) => callEnd({ id, user: userId }, 0)) })
        assert.lengthOf(yield* calls.orphans(later, later, 10), 0)
        const reservations = yield* (yield* ReservationStore).lost(later, 10)
        assert.lengthOf(reservations, 1)
        yield* writeReservations({
          sizes: reservations.map(({ key }) => ({ ...reservation(userId, 0), key })),
          processId: reservations[0]!.processId
        })
        assert.lengthOf(yield* (yield* ReservationStore).lost(later, 10), 0)

        const deliveries = yield* DeliveryStore
        assert.strictEqual((yield* deliveries.requeueLost(later, later, later, 1000)).rescued, 2)
        const [endpoint] = yield* sql<{ id: string }>`
          SELECT id FROM webhook_endpoints WHERE enabled AND deleted_at IS NULL`
        const wanted = [{ endpointId: EndpointId.make(endpoint!.id), limit: 100 }]
        const claimed = yield* deliveries.claim({
          wanted,
          owner: "proc_new",
          now: later,
          claimedAt: later
        })
        assert.lengthOf(claimed, 7, "two of the nine had ended")
        yield* deliveries.record(
          claimed.map((one) => ({
            claimed: one,
            endedAt: later,
            outcome: mockOutcome(200),
            nextDueAt: Option.none()
          }))
        )
        const left =
          yield* sql`SELECT 1 FROM delivery_queue WHERE id = ANY(${claimed.map(({ id }) => id)}::text[])`
        assert.lengthOf(left, 0)
        assert.strictEqual(yield* breaches, 0)
      }).pipe(
        Effect.provide(
          Layer.merge(walletStores, DeliveryStoreLive.layer).pipe(
            Layer.provideMerge(adopted(database))
          )
        )
      )
    )

    it.live("its usage is made anew once, day by day, whatever stops in between", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* Migrations.migrate()
        assert.lengthOf(yield* sql`SELECT FROM usage_days`, 0)
        const before = yield* sql`SELECT * FROM usage_rebuilds`
        // A process dies within a step
        const died = Effect.flip(
          sql.withTransaction(Effect.andThen(rebuildNext, Effect.fail("died")))
        )
        assert.strictEqual(yield* died, "died")
        assert.deepStrictEqual(yield* sql`SELECT * FROM usage_rebuilds`, before)
        assert.isFalse(yield* rebuildNext)
        yield* Effect.repeat(rebuildNext, { until: (done) => done })
        assert.lengthOf(yield* sql`SELECT FROM usage_rebuilds`, 0)
        assert.deepStrictEqual(yield* uncounted, [])
        assert.isAbove((yield* sql`SELECT FROM usage_days`).length, 0)
        assert.strictEqual(yield* breaches, 0)
      }).pipe(Effect.provide(database))
    )

    it.effect("its tasks are run to their end, its usage is right, and no wallet drifts", () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(DateTime.toEpochMillis(later))
        yield* Effect.gen(function* () {
          const tasks = yield* unfinished
          assert.lengthOf(tasks, 4)
          yield* advance("30 seconds")
          const answers = yield* eventually(
            Effect.forEach(tasks, (id) => callWith(apiKey)("GET", `${models}/generation/${id}`)),
            (answers) => answers.every(({ json }) => json.task_info.status === "completed")
          )
          for (const { json } of answers) assert.lengthOf(json.images, 1)
          yield* advance("2 minutes", "5 seconds")
          const wallets = yield* WalletStore
          assert.strictEqual(yield* wallets.drift, 0)
          const sql = yield* SqlClient
          assert.lengthOf(yield* sql`SELECT 1 FROM holds`, 0, "also of the process that was killed")
          assert.deepStrictEqual(yield* uncounted, [])
          assert.strictEqual(yield* breaches, 0)
        }).pipe(Effect.provide(layerGateway({ database: adopted(database) })))
      })
    )
  })
}

describe("a database older or newer than the former migration 0017", () => {
  const Former = former.postgres!

  const refused = Effect.gen(function* () {
    const before = yield* contents
    const { message } = yield* Effect.flip(Migrations.migrate())
    assert.deepStrictEqual(sorted(yield* contents), sorted(before), "nothing was changed")
    return message
  })

  it.live("is refused at an earlier migration", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`DELETE FROM schema_migrations WHERE id = 17`
      assert.strictEqual(
        yield* refused,
        "Migration 0016_allowances: the database stands here, and this program adopts 0017_settling " +
          "only. Start the last program that has the migration 0017_settling once, then this one."
      )
    }).pipe(Effect.provide(Former))
  )

  it.live("is refused when a file of it was different", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`UPDATE schema_migrations SET sha256 = 'x' WHERE id = 4`
      assert.include(yield* refused, "0004_wallet: the database has another version of it. Only")
    }).pipe(Effect.provide(Former))
  )

  it.live("is refused with an unknown migration", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`INSERT INTO schema_migrations VALUES (18, '0018_more', 'x', ${killedAt})`
      assert.include(yield* refused, "0018_more: the database has it, this program does not. Start")
    }).pipe(Effect.provide(Former))
  )

  it.effect("is refused while a process of the earlier program runs", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`UPDATE processes SET heartbeat_at = now() + interval '5 seconds' WHERE id <> 'proc_left'`
      const refusing = yield* Effect.forkChild(refused)
      yield* eventually(
        Effect.map(TestClock.adjust("1 second"), () => refusing.pollUnsafe()),
        (exit) => exit !== undefined
      )
      assert.include(
        yield* Fiber.join(refusing),
        "a process of the earlier program is running. Stop all of them"
      )
    }).pipe(Effect.provide(Former))
  )

  it.live("is adopted when the last process has been silent for long enough", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      yield* sql`UPDATE processes SET heartbeat_at = now() - interval '9 seconds' WHERE id <> 'proc_left'`
      assert.strictEqual((yield* Migrations.migrate())[0], "0001_initial")
    }).pipe(Effect.provide(Former))
  )
})
