import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { EndpointId, EventId, UserId } from "../../../src/domain/Ids.ts"
import type { DeliveryId } from "../../../src/domain/Ids.ts"
import { PartitionStore } from "../../../src/process/retention/PartitionStore.ts"
import { DeliveryLogStore } from "../../../src/webhooks/DeliveryLogStore.ts"
import type { AttemptRow } from "../../../src/webhooks/DeliveryLogStore.ts"
import { DeliveryStore } from "../../../src/webhooks/DeliveryStore.ts"
import type { ClaimedDelivery } from "../../../src/webhooks/DeliveryStore.ts"
import * as DeliveryStoreLive from "../../../src/webhooks/DeliveryStoreLive.ts"
import { failed } from "../../../src/webhooks/WebhookExchange.ts"
import { mockOutcome } from "../../../src/webhooks/WebhookSender.ts"
import { queueDeliveries } from "../../support/deliveries.ts"
import { besideLocked } from "../../support/lockedRows.ts"
import { describeMigratedStores } from "../../support/stores.ts"

const user = UserId.make("019a0c5e-7f3a-7a00-9e2b-4f6a8c0d1e2f")
const endpointId = EndpointId.make("whe_1")
const at = (text: string) => DateTime.makeUnsafe(text)
const start = at("2026-03-01T12:00:00Z")
const later = (seconds: number) => DateTime.add(start, { seconds })

const publish = Effect.fnUntraced(function* (n: number, now: DateTime.Utc) {
  const store = yield* DeliveryStore
  const event = {
    id: EventId.make(`evt_${n}`),
    body: new TextEncoder().encode("{}"),
    type: "task.succeeded"
  }
  return yield* store.publishTo(user, endpointId, event, now)
})

const prepare = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO users (id, email, created_at) VALUES (${user}, 'a@b.c', now())`
  yield* sql`
    INSERT INTO webhook_endpoints
      (id, user_id, url, events, enabled, secret, secret_preview, created_at, updated_at)
    VALUES (${endpointId}, ${user}, 'https://example.com', '{}', true, 'x', 'x', now(), now())`
})

const claim = (owner: string, now: DateTime.Utc) =>
  Effect.flatMap(DeliveryStore, (store) =>
    store.claim({ wanted: [{ endpointId, limit: 16 }], owner, now, claimedAt: now })
  )

const beat = Effect.fnUntraced(function* (owner: string, now: DateTime.Utc) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO processes VALUES (${owner}, ${DateTime.toDateUtc(now)}, ${DateTime.toDateUtc(now)})`
})

describeMigratedStores("deliveries and their log", (database, kind) => {
  const Live = Layer.mergeAll(
    DeliveryStoreLive.layer,
    DeliveryLogStore.layer,
    PartitionStore.layer
  ).pipe(Layer.provideMerge(database))

  it.effect("a process paused beyond its lease changes nothing written by its successor", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const log = yield* DeliveryLogStore
      yield* prepare
      const id = yield* publish(1, start)
      yield* beat("paused", start)
      yield* beat("other", later(20))
      const [paused] = yield* claim("paused", start)
      assert.deepStrictEqual(yield* claim("other", later(1)), [], "it is owned")
      assert.strictEqual(
        (yield* store.requeueLost(later(10), later(-100), later(20), 1000)).rescued,
        1
      )
      const [taken] = yield* claim("other", later(20))
      assert.deepStrictEqual([taken?.id, taken?.seq, taken?.attempt], [id, 2, 0])
      // The paused process continues and reports a failure of its attempt
      yield* store.record([
        {
          claimed: paused!,
          endedAt: later(21),
          outcome: mockOutcome(500),
          nextDueAt: Option.some(later(36))
        }
      ])
      const between = Option.getOrThrow(yield* log.find(user, id))
      assert.deepStrictEqual([between.status, between.attempts], ["delivering", 0])
      const done = { endedAt: later(22), outcome: mockOutcome(200), nextDueAt: Option.none() }
      yield* store.record([{ claimed: taken!, ...done }])
      yield* store.record([{ claimed: taken!, ...done }])
      const row = Option.getOrThrow(yield* log.find(user, id))
      assert.deepStrictEqual([row.status, row.attempts], ["succeeded", 1], "only once")
      assert.deepStrictEqual(
        (yield* log.attempts(id)).map((it) => it.status),
        [500, 200]
      )
    }).pipe(Effect.provide(Live))
  )

  if (kind === "postgres") {
    it.effect("a delivery that another transaction has locked is skipped without waiting", () =>
      Effect.gen(function* () {
        const store = yield* DeliveryStore
        const log = yield* DeliveryLogStore
        yield* prepare
        const first = yield* publish(1, start)
        const second = yield* publish(2, later(1))
        const ids = (claims: ReadonlyArray<ClaimedDelivery>) => claims.map(({ id }) => id)
        const locked = `SELECT FROM delivery_queue WHERE id = '${first}'`
        assert.deepStrictEqual(ids(yield* besideLocked(locked, claim("p", later(5)))), [second])
        assert.deepStrictEqual(ids(yield* claim("p", later(5))), [first])
        const rescue = store.requeueLost(later(10), later(-100), later(20), 1000)
        assert.strictEqual((yield* besideLocked(locked, rescue)).rescued, 1)
        const [again] = yield* claim("p", later(20))
        assert.strictEqual(again?.id, second)
        // Another process is writing that the endpoint fails
        const outcome = mockOutcome(500)
        const record = store.record([
          { claimed: again!, endedAt: later(21), outcome, nextDueAt: Option.some(later(36)) }
        ])
        yield* besideLocked(`SELECT FROM webhook_endpoints WHERE id = '${endpointId}'`, record)
        assert.strictEqual(Option.getOrThrow(yield* log.find(user, second!)).attempts, 1)
      }).pipe(Effect.provide(Live))
    )
  }

  it.effect(
    "a running attempt is reported, and counts in the sliding minute as if it ended now",
    () =>
      Effect.gen(function* () {
        const store = yield* DeliveryStore
        const log = yield* DeliveryLogStore
        yield* prepare
        const id = yield* publish(1, start)
        yield* beat("p", later(5))
        const [claimed] = yield* claim("p", later(5))
        const shown = (attempts: ReadonlyArray<AttemptRow>) =>
          attempts.map((it) => [it.seq, it.startedAt, it.endedAt, it.failure])
        assert.deepStrictEqual(shown(yield* log.attempts(id)), [[1, later(5), null, null]])
        const ended = (second: number) =>
          store.endedSince(endpointId, later(second - 60), later(second))
        assert.deepStrictEqual(yield* ended(6), [later(6)])
        // Its process counts as dead
        yield* store.requeueLost(later(10), later(-100), later(20), 1000)
        const lost = [1, later(5), later(20), "lost" as const]
        assert.deepStrictEqual(shown(yield* log.attempts(id)), [lost])
        assert.deepStrictEqual(yield* ended(21), [later(20)])
        // It was not dead and responds late; an interrupted record may come twice in one batch
        const done = {
          claimed: claimed!,
          endedAt: later(22),
          outcome: mockOutcome(200),
          nextDueAt: Option.none()
        }
        yield* store.record([done, done])
        assert.deepStrictEqual(shown(yield* log.attempts(id)), [[1, later(5), later(22), null]])
        const row = Option.getOrThrow(yield* log.find(user, id))
        assert.deepStrictEqual([row.status, row.attempts], ["succeeded", 1])
        assert.deepStrictEqual(yield* ended(90), [])
      }).pipe(Effect.provide(Live))
  )

  it.effect(
    "a claimed delivery is shown as delivering since its claim, also in lists by status",
    () =>
      Effect.gen(function* () {
        const store = yield* DeliveryStore
        const log = yield* DeliveryLogStore
        yield* prepare
        const waiting = yield* publish(1, later(1))
        const sent = yield* publish(2, start)
        const [claimed] = yield* store.claim({
          wanted: [{ endpointId, limit: 1 }],
          owner: "p",
          now: later(5),
          claimedAt: later(5)
        })
        assert.strictEqual(claimed?.id, sent)
        const shown = Effect.fnUntraced(function* (id: DeliveryId) {
          const row = Option.getOrThrow(yield* log.find(user, id))
          return [row.status, row.updatedAt, row.nextDueAt]
        })
        assert.deepStrictEqual(yield* shown(sent), ["delivering", later(5), null])
        assert.deepStrictEqual(yield* shown(waiting), ["pending", later(1), later(1)])
        const listed = (status: "pending" | "delivering" | "failed") =>
          Effect.map(
            log.search(user, { status }, { before: Option.none(), limit: 10 }),
            ({ rows }) => rows.map((row) => row.id)
          )
        assert.deepStrictEqual(yield* listed("delivering"), [sent])
        assert.deepStrictEqual(yield* listed("pending"), [waiting])
        const nextDueAt = Option.some(later(21))
        const outcome = mockOutcome(500)
        yield* store.record([{ claimed: claimed!, endedAt: later(6), outcome, nextDueAt }])
        assert.deepStrictEqual(yield* shown(sent), ["pending", later(6), later(21)])
        assert.deepStrictEqual(yield* listed("delivering"), [])
      }).pipe(Effect.provide(Live))
  )

  it.effect("attempts claimed by another process count in the minute before they end", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      yield* prepare
      yield* queueDeliveries(endpointId, 610, DateTime.toDateUtc(start))
      yield* beat("one", start)
      yield* beat("two", start)
      const take = (owner: string, limit: number, second: number) =>
        store.claim({
          wanted: [{ endpointId, limit }],
          owner,
          now: later(second),
          claimedAt: later(second)
        })
      const end = (all: ReadonlyArray<ClaimedDelivery>) =>
        store.record(
          all.map((claimed) => ({
            claimed,
            endedAt: later(4),
            outcome: mockOutcome(200),
            nextDueAt: Option.none()
          }))
        )
      for (let n = 0; n < 36; n += 1) yield* end(yield* take("one", 16, 1))
      const running = yield* take("one", 14, 1)
      assert.lengthOf(running, 14)
      assert.lengthOf(yield* take("two", 16, 2), 2, "16 at once, over both")
      assert.lengthOf(yield* take("two", 16, 2), 0)
      yield* end(running.slice(0, 13))
      assert.lengthOf(yield* take("two", 16, 3), 8, "600 less 589 ended and 3 running attempts")
      assert.lengthOf(yield* take("two", 16, 3), 0)
      assert.lengthOf(yield* take("two", 16, 63), 0, "a minute after their end at the earliest")
      assert.lengthOf(yield* take("two", 16, 64), 5, "11 of 16 concurrent attempts are running")
    }).pipe(Effect.provide(Live))
  )

  it.effect(
    "a failure that is recorded twice because the store's response was lost counts once",
    () =>
      Effect.gen(function* () {
        const store = yield* DeliveryStore
        const log = yield* DeliveryLogStore
        yield* prepare
        const id = yield* publish(1, start)
        const [claimed] = yield* claim("p", start)
        const failure = {
          claimed: claimed!,
          endedAt: later(1),
          outcome: mockOutcome(500),
          nextDueAt: Option.some(later(16))
        }
        yield* store.record([failure])
        yield* store.record([failure])
        const row = Option.getOrThrow(yield* log.find(user, id))
        assert.deepStrictEqual([row.status, row.attempts], ["pending", 1])
        const [second] = yield* claim("p", later(16))
        assert.deepStrictEqual([second?.attempt, second?.seq], [1, 2])
      }).pipe(Effect.provide(Live))
  )

  it.effect("a claim that was not sent is returned, unless it has been taken over", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      yield* prepare
      const id = yield* publish(1, start)
      const [paused] = yield* claim("paused", start)
      yield* store.requeueLost(later(10), later(-100), later(20), 1000)
      const [taken] = yield* claim("other", later(20))
      yield* store.releaseClaims([paused!])
      assert.deepStrictEqual(yield* claim("third", later(21)), [], "it is owned")
      yield* store.releaseClaims([taken!])
      const [again] = yield* claim("third", later(21))
      assert.deepStrictEqual([again?.id, again?.attempt], [id, 0])
    }).pipe(Effect.provide(Live))
  )

  it.effect("an abandoned claim is lost, and no other claim", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      yield* prepare
      yield* beat("p", later(1))
      yield* beat("q", later(1))
      yield* publish(1, start)
      yield* claim("p", start)
      yield* publish(2, start)
      yield* claim("q", later(1))
      const id = yield* publish(3, start)
      yield* claim("p", later(1))
      yield* store.abandonClaims({ endpoints: [endpointId], owner: "p", claimedAt: later(1) })
      yield* store.requeueLost(later(0), later(-100), later(2), 1000)
      assert.deepStrictEqual(
        (yield* claim("p", later(2))).map((it) => it.id),
        [id]
      )
    }).pipe(Effect.provide(Live))
  )

  it.effect("an endpoint fails since the first failure after its last success", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const sql = yield* SqlClient.SqlClient
      yield* prepare
      /** Sends as many events, whose attempts end with these statuses at these seconds, recorded together. */
      const end = Effect.fnUntraced(function* (...ends: ReadonlyArray<readonly [number, number]>) {
        const [, first] = ends[0]!
        yield* queueDeliveries(endpointId, ends.length, DateTime.toDateUtc(later(first)))
        const claimed = yield* claim("p", later(first))
        yield* store.record(
          ends.map(([status, second], n) => ({
            claimed: claimed[n]!,
            endedAt: later(second),
            outcome: status === 0 ? failed("lost", "paused") : mockOutcome(status),
            nextDueAt: status === 0 ? Option.some(later(1e6)) : Option.none()
          }))
        )
        const [row] = yield* sql<{ readonly failingSince: Date | null }>`
          SELECT failing_since FROM webhook_endpoints`
        return row?.failingSince ?? null
      })
      const at = (second: number) => DateTime.toDateUtc(later(second))
      assert.isNull(yield* end([0, 1]), "a lost attempt says nothing")
      assert.deepStrictEqual(yield* end([500, 4], [500, 3]), at(3))
      assert.deepStrictEqual(yield* end([500, 5]), at(3))
      assert.deepStrictEqual(yield* end([500, 6], [500, 9], [200, 7], [500, 8], [0, 9]), at(8))
      assert.isNull(yield* end([200, 11], [500, 10]))
    }).pipe(Effect.provide(Live))
  )

  it.effect("a redelivery to an endpoint that was deleted meanwhile is not tried again", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const log = yield* DeliveryLogStore
      const sql = yield* SqlClient.SqlClient
      yield* prepare
      const ids = [yield* publish(1, start), yield* publish(2, start), yield* publish(3, start)]
      yield* sql`UPDATE webhook_endpoints SET enabled = false`
      assert.deepStrictEqual(yield* claim("p", later(1)), [], "it is disabled")
      yield* log.requeue(ids.slice(0, 2), later(1))
      const [failing, lost] = yield* claim("p", later(1))
      assert.isDefined(lost)
      yield* sql`UPDATE webhook_endpoints SET deleted_at = now()`
      yield* log.requeue(ids, later(2))
      assert.deepStrictEqual(yield* claim("p", later(2)), [], "it is deleted")
      const nextDueAt = Option.some(later(17))
      const outcome = mockOutcome(500)
      yield* store.record([{ claimed: failing!, endedAt: later(2), outcome, nextDueAt }])
      yield* store.requeueLost(later(10), later(-100), later(20), 1000)
      assert.lengthOf(yield* sql`SELECT FROM delivery_queue`, 1, "the one that was not claimed")
      yield* store.skipDisabled(start, later(20))
      const rows = yield* sql`SELECT status FROM deliveries`
      assert.deepStrictEqual(
        rows.map((row) => row["status"]),
        ["skipped", "skipped", "skipped"]
      )
    }).pipe(Effect.provide(Live))
  )

  it.effect("a waiting delivery that is redelivered has six new attempts", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const log = yield* DeliveryLogStore
      yield* prepare
      const id = yield* publish(1, start)
      const [claimed] = yield* claim("p", start)
      const failure = { claimed: claimed!, endedAt: later(1), outcome: mockOutcome(500) }
      yield* store.record([{ ...failure, nextDueAt: Option.some(later(16)) }])
      yield* log.requeue([id], later(2))
      const [again] = yield* claim("p", later(2))
      assert.deepStrictEqual([again?.attempt, again?.seq], [0, 2])
    }).pipe(Effect.provide(Live))
  )

  it.effect("the late end of an attempt that was given up as lost still counts", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const log = yield* DeliveryLogStore
      yield* prepare
      const id = yield* publish(1, start)
      const [claimed] = yield* claim("slow", start)
      assert.strictEqual(
        (yield* store.requeueLost(later(10), later(-100), later(20), 1000)).rescued,
        1
      )
      const failure = { claimed: claimed!, endedAt: later(21), outcome: mockOutcome(500) }
      yield* store.record([{ ...failure, nextDueAt: Option.some(later(36)) }])
      assert.deepStrictEqual(yield* claim("other", later(35)), [], "not due before its retry")
      const row = Option.getOrThrow(yield* log.find(user, id))
      assert.deepStrictEqual([row.status, row.attempts], ["pending", 1])
    }).pipe(Effect.provide(Live))
  )

  it.effect("a redelivery during the deletion of its endpoint does not wait forever", () =>
    Effect.gen(function* () {
      const store = yield* DeliveryStore
      const log = yield* DeliveryLogStore
      const sql = yield* SqlClient.SqlClient
      yield* prepare
      const id = yield* publish(1, start)
      const deleted = DateTime.toDateUtc(later(1))
      yield* sql`UPDATE webhook_endpoints SET enabled = false, deleted_at = ${deleted}, updated_at = ${deleted}`
      // It had found the endpoint before
      yield* log.requeue([id], later(2))
      yield* store.skipDisabled(start, later(3))
      assert.strictEqual(Option.getOrThrow(yield* log.find(user, id)).status, "skipped")
      assert.lengthOf((yield* store.due(Option.none(), later(3))).endpoints, 0)
    }).pipe(Effect.provide(Live))
  )

  it.effect(
    "a delivery that retention has dropped from the default partition is no longer queued",
    () =>
      Effect.gen(function* () {
        const partitions = yield* PartitionStore
        const sql = yield* SqlClient.SqlClient
        yield* prepare
        yield* publish(1, start)
        const much = later(60 * 86_400)
        yield* publish(2, much)
        yield* partitions.maintain(later(60 * 86_400 + 1), 1, later(30 * 86_400))
        assert.lengthOf(yield* sql`SELECT id FROM deliveries`, 1)
        assert.lengthOf(yield* sql`SELECT id FROM delivery_queue`, 1)
      }).pipe(Effect.provide(Live))
  )

  it.effect("processes that concurrently create and drop partitions do not block each other", () =>
    Effect.gen(function* () {
      const partitions = yield* PartitionStore
      const many = <A, E, R>(keep: Effect.Effect<A, E, R>) =>
        Effect.all(
          Array.from({ length: 4 }, () => keep),
          { concurrency: "unbounded" }
        )
      const made = yield* many(partitions.maintain(later(2), 3, later(-30 * 86_400)))
      // Four tables and four days: one caller creates each partition
      assert.strictEqual(
        made.reduce((sum, it) => sum + it.made, 0),
        16
      )
      const dropped = yield* many(partitions.maintain(later(60 * 86_400), 3, later(30 * 86_400)))
      assert.strictEqual(
        dropped.reduce((sum, it) => sum + it.dropped, 0),
        16
      )
    }).pipe(Effect.provide(Live))
  )

  it.effect(
    "partitions of days are created in advance, rows of the default one are moved, and old days dropped",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const log = yield* DeliveryLogStore
        const partitions = yield* PartitionStore
        yield* prepare
        // Written before the day had a partition
        const store = yield* DeliveryStore
        const id = yield* publish(1, start)
        const [failing] = yield* claim("p", later(1))
        const retry = { endedAt: later(1), nextDueAt: Option.some(later(3)) }
        yield* store.record([{ claimed: failing!, outcome: mockOutcome(500), ...retry }])
        const first = yield* partitions.maintain(later(2), 7, later(-30 * 86_400))
        assert.deepStrictEqual(first, { made: 32, dropped: 0 })
        const again = yield* partitions.maintain(later(3), 7, later(-30 * 86_400))
        assert.deepStrictEqual(again, { made: 0, dropped: 0 })
        const spacious = yield* sql`
        SELECT relname::text AS part FROM pg_class WHERE 'fillfactor=50' = ANY(reloptions)
          AND relname ~ '^(events|deliveries|delivery_attempts|calls)_(20260301|default)$'
        ORDER BY part`
        assert.deepStrictEqual(
          spacious.map((row) => row["part"]),
          ["deliveries_20260301", "deliveries_default"],
          "the page has space for the one update of a row"
        )
        const where = yield* sql`
        SELECT tableoid::regclass::text AS part FROM deliveries
        UNION ALL SELECT tableoid::regclass::text FROM events
        UNION ALL SELECT tableoid::regclass::text FROM delivery_attempts`
        assert.deepStrictEqual(
          where.map((row) => row["part"]),
          ["deliveries_20260301", "events_20260301", "delivery_attempts_20260301"]
        )
        const [claimed] = yield* claim("p", later(3))
        yield* store.record([
          {
            claimed: claimed!,
            endedAt: later(4),
            outcome: mockOutcome(200),
            nextDueAt: Option.none()
          }
        ])
        assert.strictEqual(Option.getOrThrow(yield* log.find(user, id)).status, "succeeded")
        const plan = yield* sql`
        EXPLAIN SELECT * FROM deliveries WHERE id = ${id} AND created_at = id_time(${id}, 'whd_')`
        assert.notInclude(JSON.stringify(plan), "20260302", "only one day is read")
        yield* publish(2, later(86_400))
        const last = yield* partitions.maintain(
          at("2026-04-01T00:00:00Z"),
          7,
          at("2026-03-02T18:00:00Z")
        )
        assert.strictEqual(last.dropped, 4)
        assert.lengthOf(yield* sql`SELECT id FROM delivery_queue`, 1, "its day is kept")
        assert.deepStrictEqual(yield* log.find(user, id), Option.none())
        const kept = yield* sql`SELECT event_id FROM deliveries`
        assert.deepStrictEqual(
          kept.map((row) => row["eventId"]),
          ["evt_2"]
        )
      }).pipe(Effect.provide(Live))
  )

  it.effect(
    "due returns the deliveries that fell due since the last call, and when the next one falls due",
    () =>
      Effect.gen(function* () {
        const store = yield* DeliveryStore
        yield* prepare
        yield* publish(1, start)
        yield* publish(2, later(100))
        const full = yield* store.due(Option.none(), later(10))
        assert.deepStrictEqual(full.endpoints, [endpointId])
        assert.deepStrictEqual(
          Option.map(full.next, DateTime.toEpochMillis),
          Option.some(DateTime.toEpochMillis(later(100)))
        )
        const recent = yield* store.due(Option.some(later(5)), later(10))
        assert.deepStrictEqual(recent.endpoints, [])
        // Asked also for what is due soon, it returns the same next time
        const soon = yield* store.due(Option.some(later(5)), later(10), later(100))
        assert.deepStrictEqual(soon, { ...full, endpoints: [endpointId] })
        const since = (seconds: number) =>
          Effect.map(store.due(Option.some(later(seconds)), later(102)), (it) => it.endpoints)
        assert.deepStrictEqual(yield* since(99), [endpointId])
        assert.deepStrictEqual(yield* since(100.999), [endpointId], "it may be committed late")
        assert.deepStrictEqual(yield* since(101), [])
        yield* claim("p", later(100))
        assert.deepStrictEqual(yield* since(99), [], "they are owned")
        assert.deepStrictEqual((yield* store.due(Option.none(), later(0))).next, Option.none())
        const sql = yield* SqlClient.SqlClient
        yield* publish(3, later(100))
        yield* sql`UPDATE webhook_endpoints SET enabled = false`
        assert.deepStrictEqual(yield* since(99), [], "it is disabled")
        yield* sql`UPDATE delivery_queue SET manual = true`
        assert.deepStrictEqual(yield* since(99), [endpointId])
      }).pipe(Effect.provide(Live))
  )
})
