import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { ownerDeadSeconds } from "../domain/Limits.ts"
import { migrationFault, readSchemaFile } from "./SchemaFiles.ts"
import type { Migration } from "./SchemaFiles.ts"
import { recordMigration, runFile } from "./SchemaState.ts"
import type { AppliedMigration } from "./SchemaState.ts"

/** The migrations that `0001_initial` has replaced, with the hashes of their files. */
const former: ReadonlyArray<readonly [name: string, sha256: string]> = [
  ["0001_tables", "9ea74f8d63fd672b26b678a9111308c93d46e77a2a211f26fd99364d2a30c0ff"],
  ["0002_functions", "0e87926958eb9ead801cf34b1fb38afa21faa697fb6e624b263ef4e64157c32f"],
  ["0003_webhooks", "62f3acd856fba9b43dea99992cd0ace8c392ea6ca9de588e025edabf19449caa"],
  ["0004_wallet", "cab68ce6ca21a1987caa8d27704e4bba9acfa0bd89b61ba65a0334a3870a72b7"],
  ["0005_tasks", "e062215a7e2186133f2fbb44dcbc8d87300cb81d66aec385c629af71b798ac3a"],
  ["0006_vendors", "9f1dadcb9db0733fc696ead7398e1b9986a0401a1a2ed100826593da8d9e5a4d"],
  ["0007_passthrough", "b73dc96a7fc978e4c7cc1b0b1ef033d4ffd14fea1d2bb8f8a584177af6604a41"],
  ["0008_plans", "9dee2482b627a69fc51882bd99ea2c21eb73405f8c2e97157e1a8f09353a733a"],
  ["0009_clocks", "b39643e9dff3a4de1cfeb66fff3c158f3d091c65703ea7ca4216e6ad6e5d612b"],
  ["0010_slots", "d30a10022a9769e80d622536c446112b26a72766b894942424cecde56ebaf8a0"],
  ["0011_call_receipts", "b1341a4825cfec119cb4ef329ec5d5358e2584469678cb1d5471abc54272851f"],
  ["0012_delivery_room", "66241fc2d96611c2728909c389a5b38287f94e1def3820ec3fe24ff7c0ffc43e"],
  ["0013_callbacks", "b529290fd7fcc55cc393e1b0b2704e03ddd5978d7add2f8169e94d3097885ecf"],
  ["0014_calls", "a1f7af7faf248bd57ca5e73ff9f21884dae2d4b712f91ab97baa719f671b3158"],
  ["0015_deliveries", "32c08387ac76324b9203c083be0caab11fadadf980508ba2a95eb6a5f73f8d96"],
  ["0016_allowances", "8fcca84011eb53acceea4cb468e18afa6f3f97868cff90528e5b7460d00e5a67"],
  ["0017_settling", "4e4cacc27257c3c05609f17018397a1144804ef51fe136e50aea702e18b1a93e"]
]

const adoptionFile = "adopt_0017.sql"

/** `fault` while processes of the earlier program run. */
export const formerProcessRuns = "a process of the earlier program is running"

/** Whether these migrations are of the numbering before `0001_initial`. */
export const isFormer = (applied: ReadonlyArray<AppliedMigration>): boolean =>
  applied[0]?.name === former[0]?.[0]

/** Adopts a database that stands at exactly the last of the former migrations; refuses any other. */
export const adopt = Effect.fnUntraced(function* (
  applied: ReadonlyArray<AppliedMigration>,
  directory: URL,
  initial: Migration
) {
  yield* checkFormer(applied)
  yield* checkProcesses
  yield* runFile(adoptionFile, yield* readSchemaFile(directory, adoptionFile))
  const sql = yield* SqlClient
  yield* sql`DELETE FROM schema_migrations`.unprepared
  yield* recordMigration(initial)
})

const checkFormer = Effect.fnUntraced(function* (applied: ReadonlyArray<AppliedMigration>) {
  for (const [index, row] of applied.entries()) {
    const [name, sha256] = former[index] ?? []
    if (name === undefined) {
      const fault = "the database has it, this program does not"
      return yield* migrationFault(row.name, fault, "Start a newer version")
    }
    if (row.id !== index + 1 || row.name !== name || row.sha256 !== sha256) {
      const remedy =
        "Only the unchanged schema of 0017_settling is adopted: restore a backup of one"
      return yield* migrationFault(name, "the database has another version of it", remedy)
    }
  }
  const last = former.at(-1)?.[0] ?? ""
  if (applied.length < former.length) {
    const fault = `the database stands here, and this program adopts ${last} only`
    const remedy = `Start the last program that has the migration ${last} once, then this one`
    return yield* migrationFault(applied.at(-1)?.name ?? "", fault, remedy)
  }
})

/** A process of the earlier program would go on with functions that are gone. */
const checkProcesses = Effect.gen(function* () {
  const sql = yield* SqlClient
  const running = yield* sql`SELECT 1 FROM processes WHERE heartbeat_at
    BETWEEN clock_timestamp() - make_interval(secs => ${ownerDeadSeconds})
      AND clock_timestamp() + make_interval(secs => ${ownerDeadSeconds})`.unprepared
  if (running.length > 0) {
    const remedy = `Stop all of them; one that was killed counts for ${ownerDeadSeconds} seconds`
    return yield* migrationFault("0001_initial", formerProcessRuns, remedy)
  }
})
