import { PGlite } from "@electric-sql/pglite"
import { Effect, Layer } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { layerEmbedded, layerSession } from "./Database.ts"
import type { Database } from "./Database.ts"
import type { DatabaseUnavailable } from "./DatabaseUnavailable.ts"
import * as Migrations from "./Migrations.ts"
import { unusable } from "./NewStore.ts"
import { compileOnceOnly, startParams } from "./PgliteOptions.ts"
import { PgliteSession } from "./PgliteStream.ts"

let template: Promise<Blob> | undefined

/** `initdb` and all migrations, once a process: a copy takes less than half of it. */
const makeTemplate = async (): Promise<Blob> => {
  compileOnceOnly()
  const pglite = await PGlite.create({ startParams: startParams(false) })
  try {
    const session = Effect.sync(() => new PgliteSession(pglite))
    await Effect.runPromise(
      Effect.provide(Migrations.migrate(), layerSession(session), { local: true })
    )
    // Nobody creates a database in it, and a copy is two thirds smaller without them
    await pglite.query("UPDATE pg_database SET datistemplate = false, datallowconn = true")
    await pglite.query("DROP DATABASE template0")
    await pglite.query("DROP DATABASE template1")
    await pglite.query("CHECKPOINT")
    return await pglite.dumpDataDir("none")
  } finally {
    await pglite.close()
  }
}

const copied = () =>
  (template ??= makeTemplate().catch((cause: unknown) => {
    template = undefined
    throw cause
  }))

/** A new migrated store in memory, for a test. */
export const layer: Layer.Layer<Database, DatabaseUnavailable | SqlError> = Layer.unwrap(
  Effect.map(Effect.tryPromise({ try: copied, catch: unusable }), (made) =>
    layerEmbedded({ dataDir: "memory", durable: false, template: made })
  )
)
