import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Redacted, String } from "effect"
import type { Layer, Scope } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { ownerDeadSeconds } from "../domain/limits/Limits.ts"
import { idleMillis, openWatched, defaultTimeouts } from "./ConnectionWatchdog.ts"
import type { Timeouts } from "./ConnectionWatchdog.ts"
import { DatabaseUnavailable, explainSqlError, parseDatabaseUrl } from "./DatabaseUnavailable.ts"
import type { DatabaseAddress } from "./DatabaseUnavailable.ts"
import { maintain } from "./EmbeddedMaintenance.ts"
import type { EmbeddedOptions } from "./EmbeddedPostgres.ts"
import { retryLostStatements } from "./LostStatements.ts"
import type { PgliteSession } from "./PgliteStream.ts"
import { checkServer } from "./ServerCheck.ts"

/** The services of both stores: one driver and one dialect. docs/reference/configuration.md#store */
export type Database = PgClient.PgClient | SqlClient

/**
 * Makes plans use indexes (ADR 0112). A table that is used as a queue may be empty when a statement is planned, and a
 * plan that scans it would be kept. JIT would compile statements that look costly in such plans.
 */
export const planning = { enable_seqscan: "off", jit: "off" } as const

/** Cached, because the same names occur in every row and the transforms are pure. */
const memoize = (transform: (name: string) => string): ((name: string) => string) => {
  const known = new Map<string, string>()
  return (name) => {
    const before = known.get(name)
    if (before !== undefined) return before
    const transformed = transform(name)
    known.set(name, transformed)
    return transformed
  }
}

/**
 * Settings of both stores. Names are camelCase in this program and snake_case in SQL; JSON values are not
 * changed. sql-pg reads `bigint` as a JS bigint, `bytea` as a `Uint8Array`, `timestamptz` as a `Date`
 * (milliseconds) and `jsonb` parsed, and takes the same values as parameters.
 */
const settings = {
  transformResultNames: memoize(String.snakeToCamel),
  transformQueryNames: memoize(String.camelToSnake),
  transformJson: false,
  applicationName: "generation-gateway"
}

/** Parses `DATABASE_URL`. */
export const addressOf = (
  url: Redacted.Redacted
): Effect.Effect<DatabaseAddress, DatabaseUnavailable> => {
  const address = parseDatabaseUrl(Redacted.value(url))
  return address instanceof DatabaseUnavailable ? Effect.fail(address) : Effect.succeed(address)
}

interface SessionOptions {
  /** Default `ownerDeadSeconds`. */
  readonly idleTransactionMillis?: number
  /** Default `defaultTimeouts`; `endless` for statements that may take long, such as migrations. */
  readonly timeouts?: Timeouts | "endless"
}

/** A migration that waits for another process's migration would not notice that the server is gone. */
const keepAliveAfter = Duration.seconds(30)

/** Settings of each connection to a Postgres server. */
export const sessionOf = (
  url: Redacted.Redacted,
  address: DatabaseAddress,
  { idleTransactionMillis = ownerDeadSeconds * 1000, timeouts = defaultTimeouts }: SessionOptions
) => ({
  ...settings,
  url,
  ...(timeouts === "endless"
    ? { keepAlive: keepAliveAfter }
    : { stream: openWatched(address, timeouts) }),
  startupParameters: {
    TimeZone: "UTC",
    ...planning,
    // A process paused or disconnected between two statements must not keep a wallet locked
    idle_in_transaction_session_timeout: `${idleTransactionMillis}`,
    ...(timeouts === "endless" ? {} : { statement_timeout: `${timeouts.statementMillis}` })
  }
})

/** A Postgres server at `DATABASE_URL`; connects once, so that startup fails with a wrong value. */
export const layerPostgres = (
  options: SessionOptions & {
    readonly url: Redacted.Redacted
    /** Default 10. */
    readonly maxConnections?: number
  }
): Layer.Layer<Database, DatabaseUnavailable> =>
  PgClient.layerFrom(
    Effect.gen(function* () {
      const address = yield* addressOf(options.url)
      const { timeouts = defaultTimeouts } = options
      const client = PgClient.make({
        ...sessionOf(options.url, address, options),
        ...(timeouts === "endless" ? {} : { idleTimeout: idleMillis(timeouts) }),
        maxConnections: options.maxConnections ?? 10
      })
      const { maxConnections = 10 } = options
      return yield* client.pipe(
        Effect.tap((sql) => checkServer(sql, address, maxConnections > 1)),
        Effect.catchTag("SqlError", (error) => explainSqlError(error, address)),
        Effect.map((sql) => retryLostStatements(sql, maxConnections))
      )
    })
  )

/**
 * The embedded store in `dataDir` (`DATA_DIR`) or in memory: the same client drives PGlite over a stream,
 * with one connection. Its maintenance runs while the layer lives.
 */
export const layerEmbedded = (
  options: EmbeddedOptions
): Layer.Layer<Database, DatabaseUnavailable | SqlError> =>
  PgClient.layerFrom(
    Effect.gen(function* () {
      // A service with `DATABASE_URL` does not load Postgres
      const { openEmbedded } = yield* Effect.promise(() => import("./EmbeddedPostgres.ts"))
      const client = yield* sessionClient(yield* openEmbedded(options))
      if (options.dataDir !== "memory") yield* maintain(client)
      return client
    })
  )

/** An open PGlite, without maintenance. */
export const layerSession = <E>(
  session: Effect.Effect<PgliteSession, E, Scope.Scope>
): Layer.Layer<Database, E | SqlError> => PgClient.layerFrom(Effect.flatMap(session, sessionClient))

const sessionClient = (session: PgliteSession) =>
  PgClient.make({
    ...settings,
    stream: session.connect,
    username: "postgres",
    database: "postgres",
    maxConnections: 1
  })
