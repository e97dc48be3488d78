import { PgClient } from "@effect/sql-pg"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { PGlite } from "@electric-sql/pglite"
import { Effect, Exit, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { Duplex } from "node:stream"
import { PgliteSession } from "../../../src/db/PgliteStream.ts"
import { migratedTemplate } from "../../../src/testing/StoreTemplates.ts"

/** From a template, which takes a fifth of the time that a new store takes. */
const makeStore = async () =>
  PGlite.create({ loadDataDir: await Effect.runPromise(migratedTemplate) })

let pglite: PGlite
let session: PgliteSession
beforeAll(async () => {
  pglite = await makeStore()
  session = new PgliteSession(pglite)
})
afterAll(() => pglite.close())

const message = (type: string, ...parts: ReadonlyArray<string | Uint8Array>) => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)))
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const untyped = (code: number, text = "") => {
  const bytes = Buffer.alloc(8 + Buffer.byteLength(text))
  bytes.writeUInt32BE(bytes.length, 0)
  bytes.writeUInt32BE(code, 4)
  bytes.write(text, 8)
  return bytes
}
const startup = untyped(196608, "user\0postgres\0database\0postgres\0\0")
const parse = (sql: string) => message("P", "\0", `${sql}\0`, "\0\0")
const bind = message("B", "\0\0", "\0\0\0\0\0\0")
const execute = message("E", "\0", "\0\0\0\0")
const sync = message("S")
const flush = message("H")
const query = (sql: string) => message("Q", `${sql}\0`)

/** A stream, and the types of the messages that it sent. */
const open = (stream: Duplex = session.connect()) => {
  let bytes = Buffer.alloc(0)
  let closed = false
  stream.on("data", (data: Uint8Array) => (bytes = Buffer.concat([bytes, data])))
  stream.on("error", () => {})
  stream.on("close", () => (closed = true))
  const answers = async () => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    let types = ""
    let offset = 0
    while (offset < bytes.length) {
      types += String.fromCharCode(bytes[offset]!)
      offset += 1 + bytes.readUInt32BE(offset + 1)
    }
    bytes = Buffer.alloc(0)
    // Parameter statuses may come at any time.
    return types.replaceAll("S", "")
  }
  return { stream, answers, raw: () => bytes, isClosed: () => closed }
}

describe("a connection to PGlite in memory", () => {
  it("responds to a startup message, even if it arrives in single bytes", async () => {
    const { stream, answers } = open()
    for (const byte of startup) stream.write(Uint8Array.of(byte))
    assert.match(await answers(), /^RK?Z$/)
    for (const byte of query("select 1")) stream.write(Uint8Array.of(byte))
    assert.strictEqual(await answers(), "TDCZ")
    stream.end()
  })

  it("refuses encryption and continues", async () => {
    const { stream, raw } = open()
    stream.write(untyped(80877103))
    await new Promise((resolve) => setTimeout(resolve, 5))
    assert.strictEqual(raw().toString(), "N")
    stream.write(untyped(80877104))
    await new Promise((resolve) => setTimeout(resolve, 5))
    assert.strictEqual(raw().toString(), "NN")
    stream.write(startup)
    await new Promise((resolve) => setTimeout(resolve, 5))
    assert.match(raw().toString("latin1"), /^NNR/)
    assert.strictEqual(raw().subarray(-6).toString("latin1"), "Z\0\0\0\u0005I")
    stream.end()
  })

  it("closes the connection on a cancel request and does not affect the session", async () => {
    const first = open()
    first.stream.write(startup)
    await first.answers()
    const second = open()
    second.stream.write(untyped(80877102, "12345678"))
    await second.answers()
    assert.isTrue(second.isClosed())
    first.stream.write(query("select 1"))
    assert.strictEqual(await first.answers(), "TDCZ")
    first.stream.end()
  })

  it("answers pipelined batches in order, and skips to the batch's Sync after an error", async () => {
    const { stream, answers } = open()
    stream.write(startup)
    await answers()
    stream.write(
      Buffer.concat([
        parse("select 1"),
        bind,
        execute,
        sync,
        parse("select 1/0"),
        bind,
        execute,
        parse("select 2"),
        bind,
        execute,
        sync,
        parse("select nope"),
        bind,
        execute,
        sync,
        parse("select 3"),
        bind,
        execute,
        sync
      ])
    )
    assert.strictEqual(await answers(), "12DCZ1EZEZ12DCZ")
    stream.end()
  })

  it("sends the responses so far on Flush, and stays in error until Sync", async () => {
    const { stream, answers } = open()
    stream.write(startup)
    await answers()
    stream.write(Buffer.concat([parse("select 1"), flush]))
    assert.strictEqual(await answers(), "1")
    stream.write(Buffer.concat([bind, execute, flush]))
    assert.strictEqual(await answers(), "2DC")
    stream.write(sync)
    assert.strictEqual(await answers(), "Z")
    stream.write(Buffer.concat([parse("select nope"), flush]))
    assert.strictEqual(await answers(), "E")
    stream.write(Buffer.concat([parse("select 1"), flush]))
    assert.strictEqual(await answers(), "")
    stream.write(sync)
    assert.strictEqual(await answers(), "Z")
    stream.end()
  })

  it("sees nothing of the previous connection, which is closed", async () => {
    const first = open()
    first.stream.write(startup)
    first.stream.write(query("create table kept (id int)"))
    first.stream.write(query("set application_name = 'first'; prepare p as select 1"))
    first.stream.write(query("begin; insert into kept values (1)"))
    first.stream.write(Buffer.concat([parse("select nope"), flush]))
    await first.answers()
    const second = open()
    second.stream.write(startup)
    assert.match(await second.answers(), /^RK?Z$/)
    assert.isTrue(first.isClosed())
    second.stream.write(query("select 1 from kept"))
    assert.strictEqual(await second.answers(), "TCZ")
    second.stream.write(query("execute p"))
    assert.strictEqual(await second.answers(), "EZ")
    second.stream.write(query("select 1 where current_setting('application_name') = 'first'"))
    assert.strictEqual(await second.answers(), "TCZ")
    second.stream.write(message("X"))
    await second.answers()
    assert.isTrue(second.isClosed())
  })

  it("has no other session state of the previous connection", async () => {
    const first = open()
    first.stream.write(startup)
    first.stream.write(
      query(`
        create sequence counted; select nextval('counted');
        create temp table own (id int); listen news; select pg_advisory_lock(7);
        declare held cursor with hold for select 1`)
    )
    await first.answers()
    const second = open()
    second.stream.write(startup)
    assert.match(await second.answers(), /^RK?Z$/)
    for (const kept of [
      "pg_cursors",
      "pg_listening_channels()",
      "pg_locks where locktype = 'advisory'",
      "(select to_regclass('own') as name) t where name is not null"
    ]) {
      second.stream.write(query(`select 1 from ${kept}`))
      assert.strictEqual(await second.answers(), "TCZ", kept)
    }
    second.stream.write(query("select lastval()"))
    assert.match(await second.answers(), /EZ$/)
  })

  it.live("is opened again by a client that has closed its connection", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 3; round++) {
        const scope = yield* Scope.make()
        const sql = yield* PgClient.make({
          stream: session.connect,
          username: "postgres",
          maxConnections: 1
        }).pipe(Scope.provide(scope))
        yield* sql`SELECT ${round}::int`
        yield* Scope.close(scope, Exit.void)
      }
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it("leaves the event loop to other work, however many statements follow each other", async () => {
    const { stream, answers } = open()
    stream.write(startup)
    await answers()
    const statements = 40
    let ended = 0
    let endedBefore = 0
    let mostInOneTurn = 0
    const countTurn = () => {
      mostInOneTurn = Math.max(mostInOneTurn, ended - endedBefore)
      endedBefore = ended
      if (ended < statements) setImmediate(countTurn)
    }
    const begin = () => stream.write(query("select count(*) from generate_series(1, 20000)"))
    await new Promise<void>((resolve) => {
      stream.on("data", () => {
        ended += 1
        if (ended < statements) begin()
        else resolve()
      })
      setImmediate(countTurn)
      begin()
    })
    countTurn()
    assert.isBelow(mostInOneTurn, statements / 2)
    stream.end()
  })

  it.live("fails a query after the store is closed, and does not hang", () =>
    Effect.gen(function* () {
      const other = yield* Effect.promise(makeStore)
      const sql = yield* PgClient.make({
        stream: new PgliteSession(other).connect,
        username: "postgres",
        maxConnections: 1
      })
      yield* sql`SELECT 1`
      yield* Effect.promise(() => other.close())
      const error = yield* Effect.flip(sql`SELECT 1`)
      assert.strictEqual(error.reason._tag, "ConnectionError")
    }).pipe(Effect.provide(Reactivity.layer))
  )
})
