import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { layerPostgres } from "../../../src/db/Database.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { schemaFolder as folder } from "../../support/schemaFolder.ts"
import { describeStores, freshDatabase } from "../../support/stores.ts"

const files = {
  "0001_things.sql": `-- the things; all of them
    create table things (id int primary key);
    create function add_one(n int) returns int language plpgsql as $body$
      begin return n + 1; end; $body$;`,
  "0002_more.sql": "insert into things values (add_one(1)); insert into things values (3)"
}

const count = (result: string, more = "") => ({
  "things.sql": `-- How many things.
create or replace function things_count(${more}) returns bigint language sql as $$
  ${result} $$;`
})

const functions = {
  ...count("select count(*) from things"),
  "other.sql": `create or replace function other() returns int language sql as $$ select 1 $$`
}

const empty = Layer.unwrap(
  Effect.map(freshDatabase(), (url) => layerPostgres({ url: Redacted.make(url.href) }))
)

const faultOf = (options: Migrations.MigrationsOptions) =>
  Effect.map(Effect.flip(Migrations.migrate(options)), (error) => error.message)

describe("migrations", () => {
  it.live("are applied in order, once, and recorded", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { options } = yield* folder(files)
      assert.deepStrictEqual(yield* Migrations.migrate(options), ["0001_things", "0002_more"])
      assert.deepStrictEqual(yield* Migrations.migrate(options), [])
      assert.deepStrictEqual(yield* sql`SELECT id FROM things`, [{ id: 2 }, { id: 3 }])
      const rows =
        yield* sql`SELECT name, length(sha256) AS length FROM schema_migrations ORDER BY id`
      assert.deepStrictEqual(rows, [
        { name: "0001_things", length: 64 },
        { name: "0002_more", length: 64 }
      ])
    }).pipe(Effect.provide(empty))
  )

  it.live("are applied once by processes that start at once", () =>
    Effect.gen(function* () {
      const url = yield* freshDatabase()
      const { options } = yield* folder(
        { ...files, "0003_slow.sql": "select pg_sleep(0.1); create table slow ()" },
        functions
      )
      const process = Migrations.migrate(options).pipe(
        Effect.provide(layerPostgres({ url: Redacted.make(url.href), maxConnections: 2 }), {
          local: true
        })
      )
      const done = yield* Effect.all([process, process, process, process], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(done.flat().sort(), [
        "0001_things",
        "0002_more",
        "0003_slow",
        "functions/other",
        "functions/things"
      ])
    })
  )

  it.live("are not applied in part if a file fails", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { options, write } = yield* folder({ "0001_things.sql": files["0001_things.sql"] })
      yield* Migrations.migrate(options)
      write({ "0002_more.sql": "insert into things values (9); insert into nowhere values (1)" })
      const message = yield* faultOf(options)
      assert.include(message, "0002_more")
      assert.include(message, 'statement 2 fails (relation "nowhere" does not exist)')
      assert.deepStrictEqual(yield* sql`SELECT id FROM things`, [])
      write(files)
      assert.deepStrictEqual(yield* Migrations.migrate(options), ["0002_more"])
    }).pipe(Effect.provide(empty))
  )

  it.live("are not applied if a later file fails", () =>
    Effect.gen(function* () {
      const { options, write } = yield* folder({
        ...files,
        "0003_wrong.sql": "insert into nowhere values (1)"
      })
      assert.include(yield* faultOf(options), "0003_wrong")
      write({ "0003_wrong.sql": "insert into things values (9)" })
      assert.deepStrictEqual(yield* Migrations.migrate(options), [
        "0001_things",
        "0002_more",
        "0003_wrong"
      ])
    }).pipe(Effect.provide(empty))
  )

  it.live("are refused with a changed file, a gap or a migration of the future", () =>
    Effect.gen(function* () {
      const { options, write } = yield* folder(files)
      yield* Migrations.migrate(options)
      write({ "0001_things.sql": "create table other ()" })
      assert.include(yield* faultOf(options), "0001_things: another version created this store")
      write({ ...files, "0004_gap.sql": "select 1" })
      assert.include(yield* faultOf(options), "0004_gap.sql: it should have the number 3")
      const older = yield* folder({ "0001_things.sql": files["0001_things.sql"] })
      assert.include(yield* faultOf(older.options), "0002_more: the database has it")
      const misnamed = yield* folder({ "1_x.sql": "select 1" })
      assert.include(yield* faultOf(misnamed.options), "1_x.sql")
      const missing = { directory: new URL("nowhere/", import.meta.url) }
      assert.include(yield* faultOf(missing), "it cannot be read")
    }).pipe(Effect.provide(empty))
  )
})

describe("functions", () => {
  const things = Effect.gen(function* () {
    const sql = yield* SqlClient
    const rows = yield* sql<{ things: bigint }>`SELECT * FROM things_count() AS things`
    return rows[0]!.things
  })

  it.live("are applied with the migrations, and again if their file has changed", () =>
    Effect.gen(function* () {
      const { options, writeFunctions } = yield* folder(files, functions)
      assert.deepStrictEqual(yield* Migrations.migrate(options), [
        "0001_things",
        "0002_more",
        "functions/other",
        "functions/things"
      ])
      assert.deepStrictEqual(yield* Migrations.migrate(options), [])
      assert.strictEqual(yield* things, 2n)
      writeFunctions(count("select 10 + count(*) from things"))
      assert.deepStrictEqual(yield* Migrations.migrate(options), ["functions/things"])
      assert.deepStrictEqual(yield* Migrations.migrate(options), [])
      assert.strictEqual(yield* things, 12n)
    }).pipe(Effect.provide(empty))
  )

  it.live("are applied with the migration that they need, all or nothing", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { options, write, writeFunctions } = yield* folder(files, functions)
      yield* Migrations.migrate(options)
      write({ "0003_colours.sql": "alter table things add colour text" })
      writeFunctions({
        ...count("select count(colour) from things"),
        "other.sql": `create or replace function other() returns int language sql as $$ select x $$`
      })
      const message = yield* faultOf(options)
      assert.include(message, "functions/other: statement 1 fails")
      assert.include(message, "a new name")
      const columns =
        yield* sql`SELECT 1 FROM information_schema.columns WHERE table_name = 'things'`
      assert.lengthOf(columns, 1)
      writeFunctions({ "other.sql": functions["other.sql"] })
      assert.deepStrictEqual(yield* Migrations.migrate(options), [
        "0003_colours",
        "functions/things"
      ])
      assert.strictEqual(yield* things, 0n)
    }).pipe(Effect.provide(empty))
  )

  it.live("still work for an older process if this one dies between two migrations", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const first = (row: string) => ({
        "first.sql": `create or replace function first_thing() returns things language sql as $$
          select row(${row})::things $$;`
      })
      const { options, write, writeFunctions } = yield* folder(files, first("1"))
      yield* Migrations.migrate(options)
      writeFunctions(first("1, 2"))
      write({
        "0003_size.sql": "alter table things add column size int",
        "0004_dies.sql": "select 1 / 0"
      })
      assert.include(yield* faultOf(options), "0004_dies")
      assert.deepStrictEqual(yield* sql`SELECT * FROM first_thing()`, [{ id: 1 }])
    }).pipe(Effect.provide(empty))
  )

  it.live("are not changed by an older program, which is refused", () =>
    Effect.gen(function* () {
      const older = yield* folder(files, functions)
      const newer = yield* folder(files, {
        ...functions,
        ...count("select 10 + count(*) from things")
      })
      yield* Migrations.migrate(older.options)
      yield* Migrations.migrate(newer.options)
      const message = yield* faultOf(older.options)
      assert.include(message, "functions/things: the database has a newer version of it")
      assert.strictEqual(yield* things, 12n)
      assert.deepStrictEqual(yield* Migrations.migrate(newer.options), [])
    }).pipe(Effect.provide(empty))
  )

  it.live("need another name for another signature, and the old one is kept", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const { options, writeFunctions } = yield* folder(files, functions)
      yield* Migrations.migrate(options)
      writeFunctions(count("select count(*) from things where id > lowest", "lowest int"))
      const message = yield* faultOf(options)
      assert.include(message, "functions: the database has things_count with another signature")
      assert.include(message, "a new name")
      assert.strictEqual(yield* things, 2n)
      const added = `create or replace function things_count_above(lowest int) returns bigint
        language sql as $$ select count(*) from things where id > lowest $$`
      writeFunctions({ "things.sql": `${functions["things.sql"]}\n${added}` })
      assert.deepStrictEqual(yield* Migrations.migrate(options), ["functions/things"])
      assert.strictEqual(yield* things, 2n)
      const above = yield* sql`SELECT * FROM things_count_above(2) AS things`
      assert.deepStrictEqual(above, [{ things: 1n }])
    }).pipe(Effect.provide(empty))
  )
})

describeStores("the program's own migrations", (database) => {
  it.live("are current in a fresh test database", () =>
    Effect.provide(
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Migrations.migrate(), [])
      }),
      database
    )
  )
})
