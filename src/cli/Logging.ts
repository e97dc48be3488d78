import { Cause, Effect, Exit, Layer, Logger, Option, References, Runtime, Schema } from "effect"
import { AppConfig, ConfigFault } from "../config/Config.ts"
import { refusedBy } from "../db/DatabaseUnavailable.ts"
import { formatJson, formatPretty } from "./PrettyLog.ts"

/** Implements `LOG_LEVEL` and `LOG_FORMAT`. docs/reference/configuration.md#logging */
export const layer = Layer.unwrap(
  Effect.map(AppConfig, ({ logFormat, logLevel }) =>
    Layer.merge(
      Logger.layer([Logger.withConsoleLog(logFormat === "json" ? formatJson : formatPretty)]),
      Layer.succeed(References.MinimumLogLevel, logLevel)
    )
  )
)

/** One line for a fault that the operator can correct; the full cause for any other. */
const explain = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const listenFault = explainListen(error)
  if (listenFault !== undefined) return listenFault
  if (error instanceof ConfigFault || isOperatorFault(error)) return error.message
  return refusedBy(error)?.message ?? Cause.pretty(cause)
}

const isOperatorFault = (error: unknown): error is Error =>
  error instanceof Error &&
  ["DatabaseUnavailable", "MigrationError", "CatalogError", "ArtifactStoreUnusable"].includes(
    error.name
  )

/** The error of Node when it cannot listen on an address. */
const ListenError = Schema.Struct({
  syscall: Schema.Literals(["listen", "getaddrinfo"]),
  code: Schema.String,
  port: Schema.optionalKey(Schema.Int),
  address: Schema.optionalKey(Schema.String),
  hostname: Schema.optionalKey(Schema.String)
})
const decodeListenError = Schema.decodeUnknownOption(ListenError)

/** One line that names `PORT` or `HOST`, if the server could not listen on them. */
const explainListen = (error: unknown): string | undefined => {
  if (!(error instanceof Error) || error.name !== "ServeError") return undefined
  const fault = Option.getOrUndefined(decodeListenError(error.cause))
  if (fault?.code === "EADDRINUSE") {
    return `PORT: ${fault.port} is in use; stop the process that listens there, or set another port`
  }
  if (fault?.code === "EACCES") {
    return `PORT: this user may not listen on ${fault.port}; set a port of 1024 or higher`
  }
  const host = fault?.address ?? fault?.hostname ?? "the address"
  const code = fault?.code ?? "unknown fault"
  return `HOST: cannot listen on ${host} (${code}); set an address of this machine, such as 127.0.0.1`
}

/** Logs why the process failed and sets its exit code, which is 0 for a requested end (SIGTERM, SIGINT). ADR 0155. */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return onExit(0)
  if (Exit.isFailure(exit)) globalThis.process.stderr.write(`${explain(exit.cause)}\n`)
  Runtime.defaultTeardown(exit, onExit)
}
