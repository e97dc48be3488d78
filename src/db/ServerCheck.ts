import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Option, Schema } from "effect"
import type { SqlConnection } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import {
  explainSqlError,
  ignoredSettings,
  lostStatements,
  readOnly,
  refusedWrites,
  tooOld,
  waitReason,
  wrongEncoding
} from "./DatabaseUnavailable.ts"
import type { DatabaseAddress } from "./DatabaseUnavailable.ts"

/** The oldest supported Postgres. docs/reference/configuration.md#store */
const serverVersionMin = 150_000

/** Waits long for a server that starts, stops or is full, and briefly for one that does not exist. */
const waitMillis = { busy: 120_000, absent: 5000 } as const
const waitStep = Duration.millis(250)

const Session = Schema.NonEmptyArray(
  Schema.Struct({
    serverVersion: Schema.String,
    number: Schema.Int,
    encoding: Schema.String,
    isStandby: Schema.Boolean,
    isPlanned: Schema.Boolean,
    isBounded: Schema.Boolean
  })
)

/**
 * Fails if the server, or a pooler in front of it, cannot be used. Waits while the server restarts.
 * docs/reference/processes.md#poolers
 */
export const checkServer = (sql: PgClient.PgClient, address: DatabaseAddress, isPool: boolean) =>
  Effect.andThen(
    checkSession(sql, address),
    isPool ? checkStatements(sql, address) : Effect.void
  ).pipe(
    (check) => whileRestarting(check, address),
    Effect.catchTags({
      SqlError: (error) => explainSqlError(error, address),
      SchemaError: Effect.die
    })
  )

const checkSession = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  address: DatabaseAddress
) {
  const rows = yield* sql`SELECT current_setting('server_version') AS server_version,
    current_setting('server_version_num')::int AS number,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS is_standby,
    current_setting('enable_seqscan') = 'off' AND current_setting('jit') = 'off' AS is_planned,
    current_setting('idle_in_transaction_session_timeout') <> '0' AS is_bounded`
  const [session] = yield* Schema.decodeUnknownEffect(Session)(rows)
  if (session.number < serverVersionMin) return yield* tooOld(session.serverVersion)
  if (session.encoding !== "UTF8") return yield* wrongEncoding(session.encoding, address)
  // A standby also refuses the LISTEN of the direct connection
  if (session.isStandby) return yield* refusedWrites(readOnly)
  if (!session.isPlanned || !session.isBounded) return yield* ignoredSettings(address)
})

/**
 * Whether a session keeps its prepared statements while another session is in a transaction. A pooler in transaction
 * mode would then switch it to another server. sql-pg repeats a lost statement without preparing it, and the view shows
 * only prepared ones.
 */
const checkStatements = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  address: DatabaseAddress
) {
  const isKept = Effect.gen(function* () {
    const session = yield* sql.reserve
    yield* countPrepared(session)
    const other = yield* sql.reserve
    yield* other.executeUnprepared("BEGIN", [], undefined)
    const count = yield* Effect.ensuring(
      countPrepared(session),
      Effect.ignore(other.executeUnprepared("COMMIT", [], undefined))
    )
    return count > 0
  }).pipe(Effect.scoped)
  // A pooler with a single server loses no statements
  const kept = yield* Effect.timeoutOption(isKept, "2 seconds")
  if (Option.contains(kept, false)) return yield* lostStatements(address)
})

const countPrepared = (session: SqlConnection.Connection) =>
  Effect.map(
    session.execute(
      "SELECT 1 FROM pg_prepared_statements WHERE statement LIKE '%gateway checks its pooler%'",
      [],
      undefined
    ),
    (rows) => rows.length
  )

const whileRestarting = <A, E>(
  check: Effect.Effect<A, E | SqlError>,
  address: DatabaseAddress
): Effect.Effect<A, E | SqlError> => {
  const attempt = (waited: number, limit: number): Effect.Effect<A, E | SqlError> =>
    Effect.catch(check, (error) => {
      const reason = waitReason(error)
      if (reason === undefined || waited >= Math.max(limit, waitMillis[reason])) {
        return Effect.fail(error)
      }
      const isNew = reason === "busy" && limit < waitMillis.busy
      const next = attempt(
        waited + Duration.toMillis(waitStep),
        Math.max(limit, waitMillis[reason])
      )
      return Effect.andThen(
        isNew
          ? Effect.logWarning(
              `Postgres at ${address.host}:${address.port} accepts no connections now; waiting for it`
            )
          : Effect.void,
        Effect.delay(next, waitStep)
      )
    })
  return attempt(0, 0)
}
