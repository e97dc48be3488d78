import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { TestClock } from "effect/testing"
import { AppConfig } from "../../../src/config/Config.ts"
import { AuditStore } from "../../../src/process/audit/AuditStore.ts"
import { LogRetention } from "../../../src/process/retention/LogRetention.ts"
import { PartitionStore } from "../../../src/process/retention/PartitionStore.ts"
import { liveLayer } from "../../support/liveLayer.ts"
import { describeMigratedStores } from "../../support/stores.ts"

const write = (resourceId: string) =>
  Effect.flatMap(AuditStore, (store) =>
    store.append({
      type: "topUp",
      actor: { type: "operator", id: null, userId: null },
      ipAddress: "192.0.2.1",
      userId: null,
      resourceId,
      changes: {},
      traceId: null,
      isDone: false
    })
  )

const kept = Effect.gen(function* () {
  const { rows } = yield* (yield* AuditStore).list({ before: Option.none(), limit: 100 })
  return rows.map(({ resourceId }) => resourceId)
})

const partitions = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql<{ name: string }>`
    SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'audit_entries'::regclass ORDER BY 1`
  return rows.map(({ name }) => name)
})

describeMigratedStores("months of the audit log", (database) => {
  const Live = Layer.mergeAll(LogRetention.layer, AuditStore.layer).pipe(
    Layer.provide(AppConfig.layerOf({})),
    Layer.provideMerge(PartitionStore.layer),
    Layer.provideMerge(database)
  )
  // The store's clock is real; only the times in its statements come from the test
  liveLayer(Live)((it) => {
    it.effect("entries are append-only, kept for a year, and dropped by the month", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient
        const { maintainAudit } = yield* LogRetention
        const start = DateTime.makeUnsafe("2026-01-31T23:00:00Z")
        yield* TestClock.setTime(DateTime.toEpochMillis(start))
        // In a month without a partition, and after the last one
        yield* write("first")
        yield* maintainAudit
        yield* TestClock.adjust("30 days")
        yield* write("second")
        yield* TestClock.adjust("30 days")
        yield* write("third")
        yield* maintainAudit
        assert.deepStrictEqual(yield* kept, ["third", "second", "first"])
        assert.deepStrictEqual(yield* partitions, [
          "audit_entries_20260101",
          "audit_entries_20260201",
          "audit_entries_20260401",
          "audit_entries_20260501",
          "audit_entries_default"
        ])
        for (const statement of [
          "DELETE FROM audit_entries WHERE resource_id = 'first'",
          "DELETE FROM audit_entries_20260101",
          "UPDATE audit_entries_20260401 SET resource_id = 'x'",
          "TRUNCATE audit_entries_20260101",
          "DELETE FROM audit_entries_default",
          "TRUNCATE audit_entries_default"
        ]) {
          const failed = yield* Effect.flip(sql.unsafe(statement))
          assert.include(JSON.stringify(failed.reason.cause), "GW001", statement)
        }

        const yearOn = DateTime.add(start, { days: 365 })
        yield* TestClock.setTime(DateTime.toEpochMillis(yearOn))
        yield* maintainAudit
        assert.deepStrictEqual(yield* kept, ["third", "second", "first"], "January is not over")
        yield* TestClock.adjust("2 hours")
        yield* maintainAudit
        assert.deepStrictEqual(yield* kept, ["third", "second"])
        yield* TestClock.adjust("61 days")
        yield* maintainAudit
        assert.deepStrictEqual(yield* kept, ["third"], "the default partition too")
      }).pipe(Effect.provide(TestClock.layer()))
    )
  })
})
