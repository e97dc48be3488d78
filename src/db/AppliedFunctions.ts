import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { migrationFault } from "./SchemaFiles.ts"
import type { FunctionFile } from "./SchemaFiles.ts"
import { recordFunctions, runFile } from "./SchemaState.ts"
import type { SchemaState } from "./SchemaState.ts"

/** The files that differ from the database. */
export const changedFunctions = (functions: ReadonlyArray<FunctionFile>, state: SchemaState) =>
  functions.filter(
    ({ name, sha256 }) =>
      !state.functions.some((applied) => applied.name === name && applied.sha256 === sha256)
  )

export const labelOf = ({ name }: { readonly name: string }): string => `functions/${name}`

const signatureRemedy =
  "Give a function whose signature changes a new name, and keep the old one for one release"

/** Creates and replaces the functions of these files in the transaction of the migrations. */
export const applyFunctions = Effect.fnUntraced(function* (files: ReadonlyArray<FunctionFile>) {
  const sql = yield* SqlClient
  if (files.length === 0) return []
  const names = files.flatMap(({ text }) =>
    Array.from(text.matchAll(/^create or replace function (\w+)/gmu), ([, name = ""]) => name)
  )
  const before = yield* bodies
  for (const file of files) {
    yield* runFile(labelOf(file), file.text, `Nothing was applied. ${signatureRemedy}`)
  }
  const [overloaded] = yield* sql`
    SELECT proname FROM pg_proc
    WHERE pronamespace = current_schema()::regnamespace AND proname = ANY(${names}::text[])
    GROUP BY proname HAVING count(*) > 1 ORDER BY proname LIMIT 1`.values
  if (overloaded !== undefined) {
    const fault = `the database has ${String(overloaded[0])} with another signature`
    return yield* migrationFault("functions", fault, signatureRemedy)
  }
  yield* recordFunctions(files)
  yield* cancelCalls(namesOfChange(before, yield* bodies))
  return files.map(labelOf)
})

const decodeBodies = Schema.decodeUnknownEffect(
  Schema.Array(Schema.Tuple([Schema.String, Schema.String]))
)

const bodies = Effect.gen(function* () {
  const sql = yield* SqlClient
  const rows = yield* sql`
    SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace`.values
  return new Map(yield* Effect.orDie(decodeBodies(rows)))
})

/** Previous functions whose body has changed, or that call a function whose body has changed. */
const namesOfChange = (
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>
): ReadonlyArray<string> => {
  let changed = [...before.keys()].filter((name) => after.get(name) !== before.get(name))
  for (let known = 0; known < changed.length;) {
    known = changed.length
    const call = callOf(changed)
    changed = [...before].flatMap(([name, body]) =>
      changed.includes(name) || call.test(body) ? [name] : []
    )
  }
  return changed
}

const callOf = (names: ReadonlyArray<string>) => new RegExp(`\\b(?:${names.join("|")})\\(`, "u")

const Waiting = Schema.Array(
  Schema.Struct({ role: Schema.String, cancelled: Schema.NullOr(Schema.Boolean) })
)

/**
 * Cancels calls of these functions that wait for a lock. Nearly all of them wait for this transaction, and would
 * continue with the old body in the new schema. Their processes call again, as after a statement timeout. Grants
 * determine which calls a role may see and cancel (ADR 0158).
 */
const cancelCalls = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  if (names.length === 0) return
  const sql = yield* SqlClient
  const call = callOf(names).source.replace("\\b", "\\m")
  const rows = yield* sql`
    SELECT r.rolname AS role, CASE WHEN a.query ~ ${call} AND (own.rolsuper OR NOT r.rolsuper AND (
      pg_has_role(r.oid, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE')
    )) THEN pg_cancel_backend(a.pid) END AS cancelled
    FROM pg_locks l
    JOIN pg_stat_activity a ON a.pid = l.pid
    JOIN pg_roles r ON r.oid = a.usesysid
    JOIN pg_roles own ON own.rolname = current_user
    WHERE NOT l.granted AND a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND (a.query ~ ${call} OR a.query = '<insufficient privilege>')`.unprepared
  const waiting = yield* Effect.orDie(decodeWaiting(rows))
  const others = new Set(waiting.flatMap((it) => (it.cancelled === null ? [it.role] : [])))
  if (others.size === 0) return
  yield* Effect.logWarning(
    `Statements of the role ${[...others].join(", ")} wait for the new schema and cannot be cancelled: calls among them may fail. Grant that role to the migrating role`
  )
})

const decodeWaiting = Schema.decodeUnknownEffect(Waiting)
