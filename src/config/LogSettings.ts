import { Config, Effect, Option } from "effect"
import { every, fault, read } from "./Setting.ts"

const otlpEndpoint = Effect.gen(function* () {
  const name = "OTEL_EXPORTER_OTLP_ENDPOINT"
  const remedy = "set the address of a collector, such as http://localhost:4318"
  const url = yield* read(name, Config.option(Config.URL(name)), remedy)
  if (Option.exists(url, ({ protocol }) => !/^https?:$/u.test(protocol))) {
    return yield* fault(name, "is not an HTTP address", remedy)
  }
  return Option.map(url, ({ href }) => href.replace(/\/+$/u, ""))
})

/** Level, format and destination of logs. */
export const logSettings = every({
  logLevel: read(
    "LOG_LEVEL",
    Config.LogLevel("LOG_LEVEL").pipe(Config.withDefault("Info" as const)),
    "set Trace, Debug, Info, Warn, Error or None"
  ),
  logFormat: read(
    "LOG_FORMAT",
    Config.Literals(["pretty", "json"], "LOG_FORMAT").pipe(Config.withDefault("pretty" as const)),
    "set pretty or json"
  ),
  otlpEndpoint
})
