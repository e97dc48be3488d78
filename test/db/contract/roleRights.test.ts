import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import { AppConfig } from "../../../src/config/Config.ts"
import { layerPostgres } from "../../../src/db/Database.ts"
import { refusedBy } from "../../../src/db/DatabaseUnavailable.ts"
import * as Migrations from "../../../src/db/Migrations.ts"
import { inspectStore } from "../../../src/db/StoreTools.ts"
import { adminToken, masterKey } from "../../support/gateway.ts"
import { freshDatabase } from "../../support/stores.ts"

/** docs/cli.md#doctor */

/** A session of the owner, and the URL of a role that has no rights in the database. */
const database = Effect.gen(function* () {
  const url = yield* freshDatabase()
  const sessionOf = ({ href }: URL) =>
    Effect.map(
      Layer.build(layerPostgres({ url: Redacted.make(href), maxConnections: 1 })),
      Context.get(SqlClient)
    )
  const owner = yield* sessionOf(url)
  const role = `reader_${randomBytes(6).toString("hex")}`
  yield* Effect.acquireRelease(owner.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD '${role}'`), () =>
    Effect.orDie(
      Effect.andThen(owner.unsafe(`DROP OWNED BY ${role}`), owner.unsafe(`DROP ROLE ${role}`))
    )
  )
  const own = new URL(url)
  own.username = role
  own.password = role
  return { owner, role, url: own, session: yield* sessionOf(own) }
})

const right =
  /^DATABASE_URL: its role lacks a permission \(permission denied for .*\)\. Connect as the role/u

layer(Layer.empty, { timeout: "60 seconds" })("a database role without rights", (it) => {
  it.effect("is named by a migration, with the remedy", () =>
    Effect.gen(function* () {
      const { session } = yield* database
      const error = yield* Effect.flip(
        Effect.provideService(Migrations.migrate(), SqlClient, session)
      )
      assert.strictEqual(error._tag, "DatabaseUnavailable")
      assert.match(error.message, right)
    }).pipe(Effect.scoped)
  )

  it.effect("is found by the doctor before a start fails", () =>
    Effect.gen(function* () {
      const { owner, role, session, url } = yield* database
      yield* owner`CREATE TABLE tasks (id int)`
      yield* owner.unsafe(`GRANT SELECT ON tasks TO ${role}`)
      const env = { DATABASE_URL: url.href, ADMIN_TOKEN: adminToken, MASTER_KEY: masterKey }
      const { mayMigrate, mayWrite } = yield* Effect.provide(inspectStore, AppConfig.layerOf(env))
      assert.deepStrictEqual({ mayMigrate, mayWrite }, { mayMigrate: false, mayWrite: false })
      const error = yield* Effect.flip(session`INSERT INTO tasks VALUES (1)`)
      assert.match(refusedBy(error)?.message ?? "", right)
      assert.isUndefined(refusedBy(yield* Effect.flip(owner`SELECT 1 / 0`)))
    }).pipe(Effect.scoped)
  )
})
