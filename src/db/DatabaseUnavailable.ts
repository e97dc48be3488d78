import { Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"

/**
 * The store cannot be opened. The message is one line: the variable, its fault and the remedy. It never contains the
 * password. docs/reference/configuration.md#rules-of-values
 */
export class DatabaseUnavailable extends Schema.TaggedError<DatabaseUnavailable>()(
  "DatabaseUnavailable",
  {
    variable: Schema.Literals(["DATABASE_URL", "DATA_DIR"]),
    fault: Schema.String,
    remedy: Schema.String
  }
) {
  override get message(): string {
    return `${this.variable}: ${this.fault}. ${this.remedy}.`
  }
}

/** The parts of a connection URL that may be shown. */
export interface DatabaseAddress {
  readonly host: string
  readonly port: string
  readonly user: string
  readonly database: string
  /** The longest time to connect, in seconds; 0 means no limit. libpq's `connect_timeout`, default 5. */
  readonly connectSeconds: number
}

const unavailable = (fault: string, remedy: string): DatabaseUnavailable =>
  new DatabaseUnavailable({ variable: "DATABASE_URL", fault, remedy })

/** The parts of the URL, or its fault. The fault never quotes the URL. */
export const parseDatabaseUrl = (text: string): DatabaseAddress | DatabaseUnavailable => {
  const example = "Write it as postgres://user:password@host:5432/database"
  const url = URL.parse(text)
  if (url === null) return unavailable("it is not a URL", example)
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") {
    return unavailable("it does not start with postgres:// or postgresql://", example)
  }
  const decoded = [url.username, url.password, url.pathname.slice(1)].map(decode)
  if (decoded.includes(undefined)) {
    return unavailable(
      "its user, password or database has a % that encodes nothing",
      "Percent-encode the special characters in it"
    )
  }
  const query = url.searchParams
  const user = query.get("user") ?? decoded[0] ?? ""
  return {
    host: query.get("host") ?? (url.hostname === "" ? "localhost" : url.hostname),
    port: query.get("port") ?? (url.port === "" ? "5432" : url.port),
    user,
    database: query.get("dbname") ?? (url.pathname.length > 1 ? (decoded[2] ?? "") : user),
    connectSeconds: Number(query.get("connect_timeout") ?? 5)
  }
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Not every text can be stored in another encoding. */
export const wrongEncoding = (encoding: string, { database }: DatabaseAddress) =>
  unavailable(
    `the database "${database}" has the encoding ${encoding}`,
    "Create one with createdb --template=template0 --encoding=UTF8"
  )

/** Explains to the operator why the first connection failed. */
export const explainSqlError = (error: SqlError, address: DatabaseAddress): DatabaseUnavailable => {
  const at = `${address.host}:${address.port}`
  const codes = errorCodes(error)
  const has = (...wanted: ReadonlyArray<string>) => wanted.some((code) => codes.includes(code))
  if (has("ECONNREFUSED", "ENOENT")) {
    return unavailable(`nothing listens at ${at}`, "Start Postgres there or correct host and port")
  }
  if (has("ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA")) {
    return unavailable(`the host ${address.host} is unknown`, "Correct the host name")
  }
  if (has("3D000")) {
    const remedy = "Create it with createdb or correct the name"
    return unavailable(`the database "${address.database}" does not exist at ${at}`, remedy)
  }
  if (error.reason._tag === "AuthenticationError" || has(insufficientPrivilege)) {
    return unavailable(
      `the server at ${at} refuses the user "${address.user}"`,
      "Correct the user and password, or grant the user access"
    )
  }
  if (has("53300", "57P03") || isRefusedMore(error)) {
    const fault = `the server at ${at} accepts no connections now`
    return unavailable(fault, "Wait until it has started, or raise its max_connections")
  }
  if (hasNoServer(error)) {
    const fault = `the pooler at ${at} has no server connection left`
    return unavailable(fault, "Raise its default_pool_size, or lower DB_POOL of the processes")
  }
  if (has("08P01") && messages(error).some((text) => text.includes("startup parameter"))) {
    return unavailable(
      `the pooler at ${at} refuses the settings of the session`,
      "Add enable_seqscan, jit, idle_in_transaction_session_timeout and statement_timeout to its ignore_startup_parameters, and set them for the role"
    )
  }
  // Another client's statement has the name, or ours no longer exists
  if (has("42P05", "26000")) return lostStatements(address)
  const why = has("ETIMEDOUT") || messages(error).some((text) => text.includes("timed out"))
  return why
    ? unavailable(`${at} does not respond`, "Correct host and port, or open the firewall")
    : unavailable(
        `the server at ${at} cannot be used (${error.reason.message})`,
        "Check that it is Postgres 15 or newer, and its sslmode"
      )
}

/** The server, or PgBouncer because of `max_client_conn`, accepts no more clients. */
const isRefusedMore = (error: unknown): boolean =>
  errorCodes(error).includes("53300") ||
  messages(error).some((text) => text.includes("no more connections allowed"))

/** PgBouncer accepted the client but had no server for its first statement. */
const hasNoServer = (error: unknown): boolean =>
  messages(error).some((text) => text.includes("query_wait_timeout"))

/**
 * Why no further connection is available, for the log. `isUnanswered`: the connection was opened, and closed before its
 * first statement was answered. PgBouncer does this when no server connection becomes free.
 */
export const connectionTrouble = (error: unknown, isUnanswered: boolean): string => {
  if (isRefusedMore(error)) return "Postgres, or a pooler before it, accepts no more connections"
  const isSilent = messages(error).some((text) =>
    (isUnanswered ? /timed out|fallen silent|closed/u : /timed out|fallen silent/u).test(text)
  )
  if (hasNoServer(error) || isSilent) {
    return "no response: Postgres is unavailable, or a pooler in session mode has too few server connections"
  }
  return messages(error).at(-1) ?? "it was closed"
}

/** The `code` of the error and of its causes. */
const errorCodes = (error: unknown): ReadonlyArray<string> =>
  causes(error).flatMap((cause) =>
    "code" in cause && typeof cause.code === "string" ? [cause.code] : []
  )

const messages = (error: unknown): ReadonlyArray<string> =>
  causes(error).map((cause) => cause.message)

/** The error and its causes, depth first. An `AggregateError` has several. */
const causes = (error: unknown, depth = 0): ReadonlyArray<Error> => {
  if (!(error instanceof Error) || depth > 5) return []
  const below = error instanceof AggregateError ? [...error.errors, error.cause] : [error.cause]
  return [error, ...below.flatMap((cause) => causes(cause, depth + 1))]
}

/** SQLSTATE of a statement that the role may not run. */
const insufficientPrivilege = "42501"

/** SQLSTATE of a write in a read-only transaction. */
export const readOnly = "25006"

/** What a responding server lacks, by SQLSTATE. */
export const lacks: ReadonlyMap<string, string> = new Map([
  ["53100", "the disk of Postgres is full"],
  ["53200", "Postgres is out of memory"],
  ["53300", "Postgres takes no more connections"],
  ["53400", "Postgres has reached a limit of its configuration"],
  [readOnly, "Postgres is read-only, as a standby is"],
  ["57P03", "Postgres starts, stops or recovers"],
  ["58030", "Postgres cannot read or write its files"]
])

/** If the role of the URL lacks a permission, or the server refuses writes, the error that says so. */
export const refusedBy = (error: unknown): DatabaseUnavailable | undefined => {
  const right = causes(error).findLast(
    (cause) => "code" in cause && cause.code === insufficientPrivilege
  )
  if (right !== undefined) {
    return unavailable(
      `its role lacks a permission (${right.message})`,
      "Connect as the role that owns the database and its tables, or grant the missing permission"
    )
  }
  const state = errorCodes(error).findLast((code) => lacks.has(code))
  return state === undefined ? undefined : refusedWrites(state)
}

/** The server refuses writes with this SQLSTATE. */
export const refusedWrites = (state: string): DatabaseUnavailable =>
  unavailable(
    `the store accepts no writes: ${lacks.get(state)} (SQLSTATE ${state})`,
    state === readOnly
      ? "Name the primary, or promote this server"
      : "Free or add what Postgres lacks"
  )

/**
 * Why startup should wait after this failure: the server starts, stops or is full (`busy`), or may be about to start
 * (`absent`).
 */
export const waitReason = (error: unknown): "busy" | "absent" | undefined => {
  const codes = errorCodes(error)
  const has = (...wanted: ReadonlyArray<string>) => wanted.some((code) => codes.includes(code))
  if (has("57P01", "57P02", "57P03") || isRefusedMore(error) || hasNoServer(error)) return "busy"
  return has("ECONNREFUSED", "ECONNRESET", "ENOENT") ? "absent" : undefined
}

/** The error if a pooler has not passed on session settings. docs/reference/processes.md#poolers */
export const ignoredSettings = ({ host, port, user }: DatabaseAddress): DatabaseUnavailable =>
  unavailable(
    `the pooler at ${host}:${port} has not passed on the settings of the session`,
    `Set them for the role: ${["enable_seqscan = off", "jit = off", "idle_in_transaction_session_timeout = '10s'", "statement_timeout = '30s'"].map((setting) => `ALTER ROLE "${user}" SET ${setting}`).join("; ")}`
  )

/** docs/reference/processes.md#poolers */
export const lostStatements = ({ host, port }: DatabaseAddress): DatabaseUnavailable =>
  unavailable(
    `the pooler at ${host}:${port} is in transaction mode and loses prepared statements`,
    "Use its session mode, or PgBouncer 1.21 or newer with max_prepared_statements above 0"
  )

/** docs/reference/configuration.md#store */
export const tooOld = (version: string): DatabaseUnavailable =>
  unavailable(`the server is Postgres ${version}`, "Use Postgres 15 or newer")
