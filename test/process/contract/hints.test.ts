import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, DateTime, Effect, Layer, Option, Redacted } from "effect"
import { AppConfig } from "../../../src/config/Config.ts"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as DirectConnection from "../../../src/db/DirectConnection.ts"
import { ProcessStore } from "../../../src/process/heartbeat/ProcessStore.ts"
import * as Hints from "../../../src/process/signals/Hints.ts"
import type { HintTopic } from "../../../src/process/signals/Hints.ts"
import { AdmissionStore } from "../../../src/users/AdmissionStore.ts"
import { ApiKeys } from "../../../src/users/ApiKeys.ts"
import { digestOf } from "../../../src/users/KeyText.ts"
import { UserStore } from "../../../src/users/UserStore.ts"
import { ownClock } from "../../support/ownClock.ts"
import { migratedDatabaseUrl } from "../../support/stores.ts"
import { newWallet, walletStores } from "../../support/wallets.ts"

/** Waits at most 10 seconds and returns the milliseconds. */
const until = (is: () => boolean) =>
  Effect.gen(function* () {
    const now = ownClock()
    const began = now()
    while (!is()) {
      assert.isBelow(now() - began, 10_000, "it did not come")
      yield* Effect.sleep(1)
    }
    return now() - began
  })

/** A process: a pool, a direct connection, hints, and a heartbeat. */
const startProcess = Effect.fnUntraced(function* (url: URL, id: string, isAlive = true) {
  const services = Hints.layer.pipe(
    Layer.provideMerge(Layer.mergeAll(walletStores, UserStore.layer, AdmissionStore.layer)),
    Layer.provideMerge(ProcessStore.layer),
    Layer.provideMerge(DirectConnection.layer(Redacted.make(url.href))),
    Layer.provideMerge(layerPostgres({ url: Redacted.make(url.href), maxConnections: 2 })),
    Layer.provideMerge(AppConfig.layerOf({ DATA_DIR: "unused" }))
  )
  const context = yield* Layer.build(Layer.fresh(services))
  const heartbeat = Effect.flatMap(DateTime.now, (now) =>
    Context.get(context, ProcessStore).heartbeat(id, now)
  )
  if (isAlive) yield* heartbeat
  const received: Array<string> = []
  const hints = Context.get(context, Hints.Hints)
  for (const topic of ["task", "stop", "account"] satisfies ReadonlyArray<HintTopic>) {
    hints.subscribe(topic, (key) => received.push(`${topic} ${key}`))
  }
  return { context, hints, heartbeat, received, sql: Context.get(context, PgClient.PgClient) }
})

const processes = Effect.gen(function* () {
  const url = yield* migratedDatabaseUrl
  const first = yield* startProcess(url, "proc_first")
  const second = yield* startProcess(url, "proc_second")
  return { url, first, second }
})

describe("hints between processes", () => {
  it.live("reach the other processes within 50 ms, and not the process that sent them", () =>
    Effect.gen(function* () {
      const { first, second, url } = yield* processes
      const third = yield* startProcess(url, "proc_third")
      const latencies: Array<number> = []
      for (let n = 0; n < 20; n += 1) {
        first.hints.publishUnsafe("task", `${n}`)
        latencies.push(yield* until(() => second.received.includes(`task ${n}`)))
      }
      const median = latencies.toSorted((a, b) => a - b)[10]
      assert.isBelow(median ?? Infinity, 50, `${latencies}`)
      second.hints.publishUnsafe("stop", "a")
      yield* until(() => first.received.length > 0 && third.received.includes("stop a"))
      assert.deepStrictEqual(first.received, ["stop a"])
      assert.notInclude(second.received, "stop a")
    }).pipe(Effect.scoped)
  )

  it.live(
    "each arrive once when thousands are sent at once; one that is too long is left out",
    () =>
      Effect.gen(function* () {
        const { first, second } = yield* processes
        first.hints.publishUnsafe("account", "x".repeat(8000))
        const keys = Array.from({ length: 3000 }, (_, n) => `${n}-${"ż".repeat(30)}`)
        for (const key of keys) first.hints.publishUnsafe("task", key)
        for (const key of keys) first.hints.publishUnsafe("task", key)
        yield* until(() => second.received.length >= keys.length)
        assert.sameMembers(
          second.received,
          keys.map((key) => `task ${key}`)
        )
      }).pipe(Effect.scoped)
  )

  it.live("continue when the server has ended the connections", () =>
    Effect.gen(function* () {
      const { first, second } = yield* processes
      const listeners = first.sql`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
      yield* first.sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`
      // Meanwhile heartbeats go through the pool. One on a connection whose end is not yet known fails and
      // is repeated, as by a process; the pool has two connections
      yield* first.heartbeat.pipe(Effect.retry({ times: 2 }))
      yield* second.heartbeat.pipe(Effect.retry({ times: 2 }))
      yield* until(() => {
        first.hints.publishUnsafe("task", "later")
        return second.received.includes("task later")
      })
      assert.isAtLeast((yield* listeners).length, 2)
    }).pipe(Effect.scoped)
  )

  it.live("are not sent while there is no other process", () =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      const only = yield* startProcess(url, "proc_only")
      const silent = yield* startProcess(url, "proc_silent", false)
      only.hints.publishUnsafe("task", "one")
      yield* Effect.sleep("200 millis")
      assert.deepStrictEqual(silent.received, [])
      yield* silent.heartbeat
      yield* until(() => {
        only.hints.publishUnsafe("task", "two")
        return silent.received.includes("task two")
      })
    }).pipe(Effect.scoped)
  )

  it.live("are sent at once when another process says that it has begun", () =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      const first = yield* startProcess(url, "proc_first")
      // No process listens, so it does not send a second one
      first.hints.publishUnsafe("task", "alone")
      yield* Effect.sleep("100 millis")
      const second = yield* startProcess(url, "proc_second")
      second.hints.publishUnsafe("begun", "proc_second")
      const millis = yield* until(() => {
        first.hints.publishUnsafe("task", "soon")
        return second.received.includes("task soon")
      })
      assert.isBelow(millis, 500)
    }).pipe(Effect.scoped)
  )

  it.live("are sent again soon when the clock of the process was set back", () =>
    Effect.gen(function* () {
      const url = yield* migratedDatabaseUrl
      const real = yield* Clock.Clock
      let shift = 0
      const clock = Object.create(real, {
        currentTimeMillisUnsafe: { value: () => real.currentTimeMillisUnsafe() + shift }
      }) as Clock.Clock
      const first = yield* startProcess(url, "proc_first").pipe(
        Effect.provideService(Clock.Clock, clock)
      )
      // It is alone, and remembers that for a moment
      first.hints.publishUnsafe("task", "alone")
      yield* Effect.sleep("200 millis")
      const second = yield* startProcess(url, "proc_second")
      shift = -3_600_000
      yield* until(() => {
        first.hints.publishUnsafe("task", "later")
        return second.received.includes("task later")
      })
    }).pipe(Effect.scoped)
  )

  it.live("of a revoked key end what other processes remember of it", () =>
    Effect.gen(function* () {
      const { first, second } = yield* processes
      const keysOf = ({ context }: typeof first) =>
        Effect.map(
          Layer.build(Layer.fresh(ApiKeys.layer)).pipe(Effect.provideContext(context)),
          Context.get(ApiKeys)
        )
      const here = yield* keysOf(first)
      const there = yield* keysOf(second)
      const userId = yield* Effect.provideContext(newWallet(10), first.context)
      const { key, row } = yield* here.create({
        userId,
        name: "key",
        scopes: ["inference"],
        expiresAt: Option.none()
      })
      yield* there.admitCached(key)
      const isKnown = () => there.cachedPrincipal(digestOf(key)) !== undefined
      assert.isTrue(isKnown())
      yield* here.revoke(userId, row.id)
      yield* until(() => !isKnown())
    }).pipe(Effect.scoped)
  )
})
