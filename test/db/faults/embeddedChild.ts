import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { layerEmbedded } from "../../../src/db/Database.ts"

/** Commits rows and prints the id of each acknowledged row, until it is killed. */
const [dataDir = "", durable = "", countMax = "Infinity"] = process.argv.slice(2)
if (dataDir === "") throw new Error("Usage: embeddedChild.ts <folder> durable|volatile [rows]")

const program = Effect.gen(function* () {
  const sql = yield* SqlClient
  yield* sql`CREATE TABLE IF NOT EXISTS acknowledged (id bigint PRIMARY KEY, body text)`
  const [row] = yield* sql`SELECT coalesce(max(id), 0)::int AS last FROM acknowledged`
  console.log("ready")
  const first = Number(row?.last) + 1
  for (let id = first; id < first + Number(countMax); id++) {
    yield* sql.withTransaction(
      sql`INSERT INTO acknowledged VALUES (${id}, ${"x".repeat(id % 500)})`
    )
    process.stdout.write(`${id}\n`)
  }
})

await Effect.runPromise(
  program.pipe(Effect.provide(layerEmbedded({ dataDir, durable: durable === "durable" })))
)
