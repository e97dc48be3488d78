import { PGlite } from "@electric-sql/pglite"
import { DateTime, Effect } from "effect"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { layerEmbedded } from "../db/Database.ts"
import type { Database } from "../db/Database.ts"
import * as Migrations from "../db/Migrations.ts"
import { schemaDirectory } from "../db/SchemaFiles.ts"
import { partitionDaysAhead } from "../domain/limits/Limits.ts"
import { PartitionStore } from "../process/retention/PartitionStore.ts"
import { madeOnce } from "./MadeOnce.ts"

/** Changes with PGlite's version. */
export const embeddedHash = () =>
  createHash("sha256").update(
    readFileSync(createRequire(import.meta.url).resolve("@electric-sql/pglite"))
  )

let hashed: string | undefined

/** Also changes with the schema, so that templates are never stale. */
export const schemaHash = () => {
  if (hashed !== undefined) return hashed
  const hash = embeddedHash()
  const schema = fileURLToPath(schemaDirectory)
  for (const folder of ["migrations", "functions"]) {
    for (const file of readdirSync(join(schema, folder)).sort())
      hash.update(file).update(readFileSync(join(schema, folder, file)))
  }
  return (hashed = hash.digest("hex").slice(0, 16))
}

/** An embedded store as a folder and as a dump, created once per machine. */
export const storeFolder = <E>(hash: string, fill: Effect.Effect<unknown, E, Database>) =>
  madeOnce(`small-store-${hash}`, async (folder) => {
    await Effect.provide(fill, layerEmbedded({ dataDir: folder, durable: false }), {
      local: true
    }).pipe(Effect.runPromise)
    const pglite = await PGlite.create(join(folder, "postgres"))
    // Template databases are not needed, and a copy is two thirds smaller without them
    await pglite.query("UPDATE pg_database SET datistemplate = false, datallowconn = true")
    await pglite.query("DROP DATABASE template0")
    await pglite.query("DROP DATABASE template1")
    await pglite.query("CHECKPOINT")
    const dump = await pglite.dumpDataDir("none")
    await pglite.close()
    writeFileSync(join(folder, "dump.tar"), new Uint8Array(await dump.arrayBuffer()))
  })

const templates = new Map<string, Blob>()

/** The dump of an embedded store. It is read once per process; each copy takes 250 ms. */
export const embeddedTemplate = <E>(hash: string, fill: Effect.Effect<unknown, E, Database>) =>
  Effect.promise(async () => {
    const known = templates.get(hash)
    if (known !== undefined) return known
    const template = new Blob([readFileSync(join(await storeFolder(hash, fill), "dump.tar"))])
    templates.set(hash, template)
    return template
  })

/** A dump of a migrated store. */
export const migratedTemplate = Effect.suspend(() =>
  embeddedTemplate(schemaHash(), Migrations.migrate())
)

/** A migrated store with the partitions that the service creates when it starts at this time. */
export const startedStore = (now: DateTime.Utc) => {
  const fill = Migrations.migrate().pipe(
    Effect.andThen(
      Effect.flatMap(PartitionStore, (store) =>
        Effect.andThen(store.maintain(now, partitionDaysAhead, now), store.maintainAudit(now, now))
      )
    ),
    Effect.provide(PartitionStore.layer)
  )
  return { hash: `${schemaHash()}-audit-${DateTime.formatIsoDateUtc(now)}`, fill }
}
