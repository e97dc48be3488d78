/**
 * CPU of Postgres for the calls of one key, or of 64 keys, spread over 1, 3 and 6 processes. Each process is a book of
 * reservations with rounds of 10 ms on a virtual clock, so that the machine's load does not change the batches. All write
 * on one connection. Slices alternate; figures are medians. See README.md.
 *
 *   node bench/shares.ts [rounds]; --calls=1500,6000 (calls a second of all processes)
 *     --book=<path of another version of src/passthrough/reservations/ReservationBook.ts>
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted } from "effect"
import { randomUUID } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { layerPostgres } from "../src/db/Database.ts"
import * as Migrations from "../src/db/Migrations.ts"
import { makeCallId } from "../src/domain/Ids.ts"
import type { UserId } from "../src/domain/Ids.ts"
import type { CallStart } from "../src/passthrough/CallStore.ts"
import { ReservationBook } from "../src/passthrough/reservations/ReservationBook.ts"
import { serverUrl, stopServer } from "../test/support/postgresProcess.ts"
import {
  breaches,
  callEnd,
  callStart,
  newCaller,
  walletStores,
  writeCalls,
  writeReservations
} from "../test/support/wallets.ts"
import { median } from "./measures.ts"
import { cpuMicros } from "./processes.ts"

const text = (name: string) =>
  process.argv.find((it) => it.startsWith(`--${name}=`))?.slice(name.length + 3)
const rounds = Number(process.argv.slice(2).find((it) => /^\d+$/u.test(it)) ?? 7)
const rates = (text("calls") ?? "1500,6000").split(",").map(Number)
const other = text("book")
const counts = [1, 3, 6]
const keysCount = 64
const roundMillis = 10
const sliceMillis = 1000
type Book = InstanceType<typeof ReservationBook>

/** One process, in which a call takes one round. */
class Caller {
  readonly #book: Book
  readonly #processId: string
  #ends: Array<() => void> = []
  #held: Array<CallStart> = []

  constructor(book: Book, processId: string) {
    this.#book = book
    this.#processId = processId
  }

  call(user: UserId, now: number): void {
    const start = callStart(user, 0.01, makeCallId(Date.now()))
    const drawn = this.#book.draw(start, { monotonic: now, wall: now })
    if (drawn === undefined) this.#held.push(start)
    else this.#ends.push(() => drawn.close(callEnd(start, 0.001)))
  }

  readonly round = Effect.fnUntraced({ self: this }, function* (now: number, isEnd: boolean) {
    // Calls without cover get separate holds
    const held = this.#held.splice(0)
    const processId = this.#processId
    if (held.length > 0) {
      yield* writeCalls({ starts: held, processId })
      yield* writeCalls({ ends: held.map((start) => callEnd(start, 0.001)), processId })
    }
    for (const end of this.#ends.splice(0)) end()
    const taken = this.#book.take({ monotonic: now, wall: now }, randomUUID, isEnd)
    if (taken === undefined) return { held: held.length, writes: 0 }
    const { sizes } = taken
    const ended = taken.ended.map((one) => ({ ...one, begunAt: Date.now() }))
    const { grants } = yield* writeReservations({ sizes, ended, processId })
    this.#book.written(taken, grants)
    return { held: held.length, writes: 1 }
  })
}

interface Version {
  readonly name: string
  readonly make: () => Book
}

const bench = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const users: Array<UserId> = []
  for (let n = 0; n < keysCount; n += 1) users.push(yield* newCaller(1_000_000_000))
  const backend = Number((yield* sql`SELECT pg_backend_pid() AS pid`)[0]!["pid"])
  const versions: Array<Version> = [{ name: "this", make: () => new ReservationBook() }]
  if (other !== undefined) {
    const module = yield* Effect.promise(() => import(pathToFileURL(other).href))
    versions.unshift({ name: "other", make: () => new module.ReservationBook() })
  }
  let started = 0
  const slice = Effect.fnUntraced(function* (
    version: Version,
    processes: number,
    keys: number,
    perSecond: number
  ) {
    const callers = Array.from(
      { length: processes },
      () => new Caller(version.make(), `prc_${(started += 1)}`)
    )
    let due = 0
    let n = 0
    let now = 1000
    const run = Effect.fnUntraced(function* (millis: number, isEnd = false) {
      let held = 0
      let writes = 0
      const [before, from] = [cpuMicros(backend), n]
      for (let at = 0; at < millis; at += roundMillis) {
        for (due += (perSecond * roundMillis) / 1000; due >= 1; due -= 1) {
          const caller = callers[Math.floor(Math.random() * processes)]!
          if (!isEnd) caller.call(users[n % keys]!, now)
          n += 1
        }
        now += roundMillis
        for (const caller of callers) {
          const done = yield* caller.round(now, isEnd)
          held += done.held
          writes += done.writes
        }
      }
      return { calls: n - from, held, micros: cpuMicros(backend) - before, writes }
    })
    // Keys begin to call frequently
    yield* run(2000)
    const found = yield* run(sliceMillis)
    yield* run(100, true)
    return {
      micros: found.micros / found.calls,
      perWrite: found.calls / Math.max(1, found.writes),
      held: found.held / found.calls
    }
  })
  for (const perSecond of rates) {
    for (const keys of [1, keysCount]) {
      const cases = counts.flatMap((processes) =>
        versions.map((version) => ({
          processes,
          version,
          found: new Array<Effect.Success<ReturnType<typeof slice>>>()
        }))
      )
      for (let round = -1; round < rounds; round += 1) {
        for (const { found, processes, version } of cases) {
          const one = yield* slice(version, processes, keys, perSecond)
          if (round >= 0) found.push(one)
        }
      }
      for (const { found, processes, version } of cases) {
        console.log(
          `${perSecond}/s, ${keys} keys, ${processes} processes, ${version.name}: ` +
            `Postgres ${median(found.map(({ micros }) => micros)).toFixed(1)} µs a call, ` +
            `${median(found.map(({ perWrite }) => perWrite)).toFixed(1)} calls a write, ` +
            `${(100 * median(found.map(({ held }) => held))).toFixed(1)} % with a separate hold`
        )
      }
    }
  }
  console.log(`breaches of the invariants: ${yield* breaches}`)
})

const folder = await mkdtemp(join(tmpdir(), `shares-${process.pid}-`))
try {
  const url = Redacted.make(await serverUrl(folder))
  const database = layerPostgres({ url, maxConnections: 1, timeouts: "endless" })
  const live = Layer.provideMerge(walletStores, Layer.provideMerge(Migrations.layer(), database))
  await Effect.runPromise(Effect.provide(bench, live))
} finally {
  await stopServer(folder)
  await rm(folder, { recursive: true, force: true })
}
process.exit(0)
