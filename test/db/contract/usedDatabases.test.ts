import { PgClient } from "@effect/sql-pg"
import { assert, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { layerPostgres } from "../../../src/db/Database.ts"
import { migratedDatabaseUrl, processDatabaseUrl } from "../../support/stores.ts"

/** Runs statements in a test's database. Returns its name and the rows of the last statement. */
const used = (...statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { href, pathname } = yield* migratedDatabaseUrl
    const run = Effect.flatMap(PgClient.PgClient, (sql) =>
      Effect.forEach(statements, (statement) => sql.unsafe(statement).unprepared)
    )
    const rows = yield* Effect.provide(run, layerPostgres({ url: Redacted.make(href) }), {
      local: true
    })
    return { pathname, last: rows.at(-1) }
  }).pipe(Effect.scoped)

const state = `
  SELECT (SELECT count(*)::int FROM users) AS users, (SELECT count(*)::int FROM api_keys) AS keys,
    pg_relation_size('users')::int AS bytes, nextval('catalogs_id_seq')::int AS next,
    (SELECT sum(n_tup_ins + n_tup_del)::int FROM pg_stat_user_tables) AS written`

/** Rows that refer to each other. */
const writes = [
  "INSERT INTO users (id, email, created_at) VALUES (gen_random_uuid(), 'one@example.com', now())",
  `INSERT INTO api_keys (id, user_id, key_hash, preview, name, scopes, created_at)
   SELECT 'one', id, '\\x00', 'sk-...', 'one', '{}', now() FROM users`,
  "SELECT nextval('catalogs_id_seq')"
]

/** On another server each test gets a new copy, because nothing would drop the kept ones. */
const databases = process.env.TEST_DATABASE_URL === undefined ? 1 : 3

it("a database that a test has written to is like new for the next test", () =>
  Effect.gen(function* () {
    const first = yield* used(state)
    const second = yield* used(...writes, state)
    const third = yield* used(state)
    assert.strictEqual(new Set([first, second, third].map((it) => it.pathname)).size, databases)
    assert.notDeepEqual(second.last, first.last)
    assert.deepStrictEqual(third.last, first.last)
  }).pipe(Effect.runPromise))

it("a database is used again even if others of another template are kept", () =>
  Effect.gen(function* () {
    const others = Effect.scoped(Effect.all(Array.from({ length: 6 }, () => processDatabaseUrl)))
    yield* Effect.scoped(Effect.andThen(migratedDatabaseUrl, others))
    const first = yield* used("SELECT 1")
    const second = yield* used("SELECT 1")
    const names = new Set([first.pathname, second.pathname])
    assert.strictEqual(names.size, Math.min(databases, 2))
  }).pipe(Effect.runPromise))

const changes = [
  "CREATE TABLE another (id int)",
  "CREATE FUNCTION another() RETURNS int LANGUAGE sql AS 'SELECT 1'",
  "ANALYZE schema_migrations",
  "DELETE FROM schema_migrations"
]

it.each(changes)("a database that differs from its template is not used again: %s", (change) =>
  Effect.gen(function* () {
    const before = yield* used(change)
    const after = yield* used("SELECT 1")
    assert.notStrictEqual(after.pathname, before.pathname)
  }).pipe(Effect.runPromise)
)
