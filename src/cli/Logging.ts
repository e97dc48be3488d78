import { Cause, Effect, Exit, Layer, Logger, References, Runtime } from "effect"
import { AppConfig, ConfigFault } from "../Config.ts"

/** `LOG_LEVEL` and `LOG_FORMAT`. Contract 9. */
export const layer = Layer.unwrap(
  Effect.map(AppConfig, ({ logFormat, logLevel }) =>
    Layer.merge(
      Logger.layer([logFormat === "json" ? Logger.consoleJson : Logger.consolePretty()]),
      Layer.succeed(References.MinimumLogLevel, logLevel)
    )
  )
)

/** Faults that the operator mends are told in one line; anything else with all that is known. */
const explain = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof ConfigFault || isOperatorFault(error)
    ? error.message
    : Cause.pretty(cause)
}

const isOperatorFault = (error: unknown): error is Error =>
  error instanceof Error &&
  ["DatabaseUnavailable", "MigrationError", "CatalogError", "ServeError"].includes(error.name)

/** Writes why the process ends, if it failed, and sets its exit code. */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
    globalThis.process.stderr.write(`${explain(exit.cause)}\n`)
  }
  // Ended by SIGTERM or SIGINT as asked: a supervisor is to see no failure
  if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) onExit(0)
  else Runtime.defaultTeardown(exit, onExit)
}
