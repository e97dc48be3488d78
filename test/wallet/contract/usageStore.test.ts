import { PgClient } from "@effect/sql-pg"
import { assert } from "@effect/vitest"
import { DateTime, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { DurationCounts, placeOf } from "../../../src/domain/Durations.ts"
import { ApiKeyId } from "../../../src/domain/Ids.ts"
import type { UserId } from "../../../src/domain/Ids.ts"
import { UsageReport } from "../../../src/wallet/UsageReport.ts"
import type { UsageQuery } from "../../../src/wallet/UsageReport.ts"
import type { UsagePage } from "../../../src/wallet/UsageStore.ts"
import { describeLive } from "../../support/stores.ts"
import {
  accept,
  breachesOf,
  callEnd,
  callKeyOf,
  callStart,
  credits,
  drawnCall,
  finish,
  newCaller,
  reservation,
  walletStores,
  writeCalls,
  writeReservations
} from "../../support/wallets.ts"

const services = Layer.merge(UsageReport.layer, walletStores)

const day = "2026-11-22"
const next = "2026-11-23"
const before = { now: DateTime.makeUnsafe(`${day}T23:59:00Z`) }
const after = { now: DateTime.makeUnsafe(`${next}T00:01:00Z`) }

const sums = (user: UserId, over: Partial<UsageQuery> = {}) =>
  Effect.flatMap(UsageReport, (usage) =>
    usage.sums(
      { from: "2026-11-01", to: "2026-11-30", groups: ["day", "key", "model"], user, ...over },
      { after: Option.none(), limit: 100 }
    )
  )

/** Two images, a video, two calls with separate holds and three drawn ones, over two days. */
const used = Effect.gen(function* () {
  const user = yield* newCaller(1000)
  const key = callKeyOf(user)
  const images = yield* accept(user, 20, { ...before, apiKeyId: key })
  const video = yield* accept(user, 100, {
    ...before,
    apiKeyId: key,
    model: "image-to-video-spark",
    resultKind: "videos",
    body: { prompt: "a", duration: 10 }
  })
  const failed = yield* accept(user, 20, { ...before, apiKeyId: key })
  yield* finish(images.taskId, 15, {
    ...before,
    outcome: { status: "completed", result: ["a", "b"], captured: 15_000_000n as never }
  })
  yield* finish(failed.taskId, undefined, before)
  const starts = [callStart(user, 5), callStart(user, 5), callStart(user, 5)]
  yield* writeCalls({ ...before, starts })
  yield* writeCalls({ ...before, ends: [callEnd(starts[0]!, 1), callEnd(starts[1]!, 0)] })
  yield* finish(video.taskId, 100, after)
  yield* writeCalls({ ...after, ends: [callEnd(starts[2]!, 2)] })
  yield* writeReservations({ ...after, sizes: [reservation(user, 50)] })
  const begunAt = DateTime.toEpochMillis(after.now)
  const drawn = [1, 2, 0].map((cost) =>
    Object.assign(drawnCall(callStart(user, 5), cost), { begunAt })
  )
  yield* writeReservations({ ...after, sizes: [reservation(user, 0)], ended: drawn })
  return user
})

const tokens = (n: number) => ({ inputTokens: 20 * n, inputCachedTokens: 0, outputTokens: 40 * n })
const none = { ...tokens(0), images: 0, videos: 0, audios: 0, seconds: 0, errors: 0 }

/** This many durations of at most a millisecond. */
const atOnce = (n: number) => [0, n]

/** A call held before midnight, and two drawn after it. */
const twoMinutesAndAtOnce = [0, 2, ...Array.from({ length: placeOf(120_000) - 1 }, () => 0), 1]

const expected = (user: UserId) => [
  {
    ...none,
    group: [day, callKeyOf(user), "gpt-4o"],
    tasks: 0,
    calls: 1,
    ...tokens(1),
    credits: 1_000_000n,
    errors: 1,
    durations: atOnce(1)
  },
  {
    ...none,
    group: [day, callKeyOf(user), "text-to-image-max"],
    tasks: 1,
    calls: 0,
    images: 2,
    credits: 15_000_000n,
    errors: 1,
    durations: atOnce(1)
  },
  {
    ...none,
    group: [next, callKeyOf(user), "gpt-4o"],
    tasks: 0,
    calls: 3,
    ...tokens(3),
    credits: 5_000_000n,
    errors: 1,
    durations: twoMinutesAndAtOnce
  },
  {
    ...none,
    group: [next, callKeyOf(user), "image-to-video-spark"],
    tasks: 1,
    calls: 0,
    videos: 1,
    seconds: 10,
    credits: 100_000_000n,
    durations: [placeOf(120_000), 1]
  }
]

const plain = <A extends object>(rows: ReadonlyArray<A>) => rows.map((row) => ({ ...row }))

describeLive("usage", services, (it) => {
  it.effect("is rolled up by day, key and model in the transactions that settle", () =>
    Effect.gen(function* () {
      const user = yield* used
      assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)
      assert.strictEqual(yield* breachesOf(user), 0)
      const [total] = yield* sums(user, { groups: ["user"] })
      assert.deepInclude({ ...total }, { tasks: 2, calls: 4, images: 2, videos: 1, seconds: 10 })
      assert.strictEqual(total!.credits as bigint, 121_000_000n)
      const filtered = yield* sums(user, { groups: ["model"], from: next, model: "gpt-4o" })
      assert.deepStrictEqual(
        filtered.map(({ credits }) => credits as bigint),
        [5_000_000n]
      )
      assert.isEmpty(yield* sums(user, { key: ApiKeyId.make("key_other") }))
      assert.isEmpty(yield* sums(user, { sandbox: true, vendor: "openai" }))
    })
  )

  it.effect("is also rolled up by hour, with errors and durations", () =>
    Effect.gen(function* () {
      const user = yield* used
      const rows = yield* sums(user, { groups: ["hour", "model"], from: day, to: next })
      const [calls, images, ...later] = rows.map(({ durations, errors, group }) => ({
        group,
        errors,
        durations
      }))
      const hour = `${day}T23:00:00.000Z`
      assert.deepStrictEqual(calls, { group: [hour, "gpt-4o"], errors: 1, durations: atOnce(1) })
      assert.deepInclude(images, { group: [hour, "text-to-image-max"], errors: 1 })
      assert.deepStrictEqual(
        later.map(({ group }) => group),
        [
          [`${next}T00:00:00.000Z`, "gpt-4o"],
          [`${next}T00:00:00.000Z`, "image-to-video-spark"]
        ]
      )
      const second = yield* sums(user, { groups: ["hour"], from: next, to: next })
      assert.strictEqual(second.length, 1)
    })
  )

  it.effect("puts durations into the classes that the service names", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const millis = Array.from({ length: 31 }, (_, power) =>
        [-1, 0, 1].map((step) => Math.max(0, 2 ** power + step))
      ).flat()
      const counts = new DurationCounts()
      for (const duration of millis) counts.add(duration)
      const [row] = yield* sql<{ places: ReadonlyArray<number>; sum: string }>`
        SELECT array_agg(o[1]::float8 ORDER BY n) AS places, durations_sum(o ORDER BY n)::text AS sum
        FROM (
          SELECT n, durations_of(timestamptz 'epoch', timestamptz 'epoch' + x * interval '1 millisecond') AS o
          FROM unnest(${millis}::float8[]) WITH ORDINALITY AS u(x, n)
        ) d`
      assert.deepStrictEqual(row?.places, millis.map(placeOf))
      assert.strictEqual(row?.sum, counts.text())
    })
  )

  it.effect("keeps hours for 35 days, and does not rebuild older ones", () =>
    Effect.gen(function* () {
      const user = yield* used
      const usage = yield* UsageReport
      const hours = () => sums(user, { groups: ["hour"], from: day, to: next })
      yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-12-27T23:59:00Z")))
      yield* usage.removeOld
      assert.strictEqual((yield* hours()).length, 2)
      yield* TestClock.adjust("1 minute")
      yield* usage.removeOld
      assert.deepStrictEqual(
        (yield* hours()).map(({ group }) => group),
        [[`${next}T00:00:00.000Z`]]
      )
      assert.strictEqual(yield* usage.rebuild({ from: day, to: next, user }), 0)
      const sql = yield* PgClient.PgClient
      yield* sql`UPDATE usage_days SET credits = credits + 1 WHERE user_id = ${user}`
      assert.strictEqual(yield* usage.rebuild({ from: day, to: next, user }), 2)
      assert.strictEqual((yield* hours()).length, 1)
      assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("is read in pages that miss and repeat nothing", () =>
    Effect.gen(function* () {
      const user = yield* used
      const usage = yield* UsageReport
      const query = { from: day, to: next, groups: ["day", "key", "model"] as const, user }
      const byCredits = expected(user).toSorted((one, other) => Number(other.credits - one.credits))
      for (const [byAmount, rows] of [
        [false, expected(user)],
        [true, byCredits]
      ] as const) {
        let last: UsagePage["after"] = Option.none()
        for (const row of rows) {
          const page = yield* usage.sums({ ...query, byAmount }, { after: last, limit: 1 })
          assert.deepStrictEqual(plain(page), [row] as never)
          last = Option.fromUndefinedOr(page[0])
        }
        assert.isEmpty(yield* usage.sums({ ...query, byAmount }, { after: last, limit: 1 }))
      }
    })
  )

  it.effect("is rebuilt from tasks and receipts, whatever it contained", () =>
    Effect.gen(function* () {
      const user = yield* used
      const usage = yield* UsageReport
      const sql = yield* PgClient.PgClient
      const rebuild = usage.rebuild({ from: "2026-11-20", to: "2026-11-25", user })
      assert.strictEqual(yield* rebuild, 0)
      for (const fault of [
        sql`UPDATE usage_days SET credits = credits + 1, images = 0, tasks = 7 WHERE user_id = ${user} AND day = ${day}`,
        sql`DELETE FROM usage_days WHERE user_id = ${user} AND day = ${day}`,
        sql`UPDATE usage_days SET errors = 0, durations = '{40,1}' WHERE user_id = ${user} AND day = ${day}`,
        sql`DELETE FROM usage_hours WHERE user_id = ${user} AND hour < ${next}::date`,
        sql`UPDATE usage_hours SET hour = hour - interval '1 hour' WHERE user_id = ${user} AND hour < ${next}::date`,
        sql`INSERT INTO usage_days SELECT user_id, day, 'key_gone', vendor, model, sandbox, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, NULL
          FROM usage_days WHERE user_id = ${user} AND day = ${day}`
      ]) {
        yield* fault
        assert.strictEqual(yield* rebuild, 1)
        assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)
        assert.strictEqual(yield* breachesOf(user), 0)
      }
      yield* sql`DELETE FROM usage_days`
      assert.isAtLeast(yield* usage.rebuild({ from: day, to: next }), 2)
      assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("is rebuilt with late charges, failed tasks that were charged, and long calls", () =>
    Effect.gen(function* () {
      const usage = yield* UsageReport
      const sql = yield* PgClient.PgClient
      const other = yield* used
      const user = yield* newCaller(1000)
      const noon = { now: DateTime.makeUnsafe(`${day}T12:00:00Z`) }
      const [late, long] = [callStart(user, 8), callStart(user, 5)]
      yield* writeCalls({ ...noon, starts: [late, long] })
      // Another process considers the call's process dead
      yield* writeCalls({ ...noon, ends: [{ ...callEnd(late, 0), outcome: "lost" }] })
      const { taskId } = yield* accept(user, 20, before)
      const error = { code: 4004, title: "Cancelled", detail: "" }
      const charge = { captured: credits(3) }
      yield* finish(taskId, undefined, { ...before, outcome: { status: "failed", error, charge } })
      yield* writeCalls({ ...after, ends: [callEnd(late, 6), callEnd(long, 2)] })
      const rows = plain(yield* sums(user))
      const hours = sums(user, { groups: ["hour"], from: day, to: next })
      const [first, ...later] = yield* hours
      assert.strictEqual(yield* usage.rebuild({ from: day, to: next, user }), 0)
      yield* sql`DELETE FROM usage_days WHERE user_id = ${user} AND day = ${next}`
      assert.strictEqual(yield* usage.rebuild({ from: next, to: next, user }), 1)
      yield* sql`DELETE FROM usage_days WHERE user_id = ${user}`
      assert.strictEqual(yield* usage.rebuild({ from: next, to: next, user }), 1)
      assert.deepStrictEqual(plain(yield* hours), plain([first!, ...later]))
      assert.strictEqual(yield* usage.rebuild({ from: day, to: day, user }), 1)
      assert.deepStrictEqual(plain(yield* sums(user)), rows)
      assert.strictEqual(yield* breachesOf(user), 0)
      assert.deepStrictEqual(plain(yield* sums(other)), expected(other) as never)
    }).pipe(Effect.provide(TestClock.layer()))
  )

  it.effect("of a day without its receipts stays as it is, or is rebuilt from the ledger", () =>
    Effect.gen(function* () {
      const user = yield* used
      const usage = yield* UsageReport
      const sql = yield* PgClient.PgClient
      yield* sql`DELETE FROM calls WHERE user_id = ${user}`
      const rebuild = usage.rebuild({ from: day, to: next, user })
      assert.strictEqual(yield* rebuild, 0)
      assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)
      yield* sql`DELETE FROM usage_days WHERE user_id = ${user} AND model = 'gpt-4o'`
      assert.strictEqual(yield* rebuild, 2)
      const rows = (yield* sums(user)).map(({ credits, group }) => [group, credits as bigint])
      assert.deepStrictEqual(rows, [
        [[day, "", ""], 1_000_000n],
        [[day, callKeyOf(user), "text-to-image-max"], 15_000_000n],
        [[next, "", ""], 5_000_000n],
        [[next, callKeyOf(user), "image-to-video-spark"], 100_000_000n]
      ])
    })
  )

  it.effect("of a day without its bodies or its free calls stays as it is", () =>
    Effect.gen(function* () {
      const user = yield* used
      const usage = yield* UsageReport
      const sql = yield* PgClient.PgClient
      const rebuild = usage.rebuild({ from: day, to: next, user })
      yield* sql`UPDATE tasks SET body = 'null', result = NULL WHERE user_id = ${user}`
      assert.strictEqual(yield* rebuild, 0)
      assert.deepStrictEqual(plain(yield* sums(user)), expected(user) as never)

      const free = yield* newCaller(1000)
      yield* writeReservations({ ...before, sizes: [reservation(free, 50)] })
      const drawn = Object.assign(drawnCall(callStart(free, 5), 0), {
        begunAt: DateTime.toEpochMillis(before.now)
      })
      yield* writeReservations({
        ...before,
        sizes: [reservation(free, 0)],
        ended: [{ ...drawn, end: { ...drawn.end, outcome: "settled" } }]
      })
      const [row] = yield* sums(free)
      assert.strictEqual(row?.calls, 1)
      assert.strictEqual(yield* usage.rebuild({ from: day, to: next, user: free }), 0)
      yield* sql`DELETE FROM calls WHERE user_id = ${free}`
      assert.strictEqual(yield* usage.rebuild({ from: day, to: next, user: free }), 0)
      assert.deepStrictEqual(plain(yield* sums(free)), plain([row!]))
    })
  )

  it.effect("costs no more to read if the ledger is long", () =>
    Effect.gen(function* () {
      const user = yield* used
      const sql = yield* PgClient.PgClient
      const plan = yield* sql`
        EXPLAIN SELECT d.model, sum(d.credits) FROM usage_days d
        WHERE d.day >= ${day}::date AND d.day <= ${next}::date AND d.user_id = ${user} GROUP BY d.model`
      const text = JSON.stringify(plan)
      assert.match(text, /usage_days_pkey|usage_days_day/u)
      assert.notMatch(text, /Seq Scan|tasks|calls|wallet_entries/u)
      const hours = JSON.stringify(
        yield* sql`
        EXPLAIN SELECT d.model, durations_sum(d.durations) FROM usage_hours d
        WHERE d.hour >= ${day}::timestamp AT TIME ZONE 'UTC' AND d.hour < (${next}::date + 1)::timestamp AT TIME ZONE 'UTC'
          AND d.user_id = ${user} GROUP BY d.model`
      )
      assert.match(hours, /usage_hours_pkey|usage_hours_hour/u)
      assert.notMatch(hours, /Seq Scan/u)
    })
  )
})
