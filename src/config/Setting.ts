import { Config, Effect, Schema } from "effect"

/**
 * A wrong variable in one line: name, fault, remedy. It stops the start.
 * docs/reference/configuration.md#rules-of-values
 */
export class ConfigFault extends Schema.TaggedError<ConfigFault>()("ConfigFault", {
  message: Schema.String
}) {}

export const fault = (name: string, problem: string, remedy: string): ConfigFault =>
  new ConfigFault({ message: `${name}: ${problem}; ${remedy}` })

/** Reads one variable; a wrong value is reported with the `remedy`. */
export const read = <A>(name: string, config: Config.Config<A>, remedy: string) =>
  Effect.mapError(config, (error) => {
    const issue = /^(?:SchemaError\()?(.*?)(?:\n|\)$|$)/u.exec(error.message)?.[1] ?? error.message
    return fault(name, issue.charAt(0).toLowerCase() + issue.slice(1), remedy)
  })

export const readSecret = (name: string, remedy: string) =>
  read(name, Config.option(Config.Redacted(name)), remedy)
