import { Config, Effect, Schema } from "effect"

/** A wrong variable, in one line: its name, the value's fault, the remedy. Contract 9. */
export class ConfigFault extends Schema.TaggedError<ConfigFault>()("ConfigFault", {
  message: Schema.String
}) {}

/** The one way to say what is wrong with a variable. */
export const fault = (name: string, problem: string, remedy: string): ConfigFault =>
  new ConfigFault({ message: `${name}: ${problem}; ${remedy}` })

/** Reads one variable; `remedy` is told when its value is wrong. */
export const read = <A>(name: string, config: Config.Config<A>, remedy: string) =>
  Effect.mapError(config, (error) => {
    const issue = /^(?:SchemaError\()?(.*?)(?:\n|\)$|$)/u.exec(error.message)?.[1] ?? error.message
    return fault(name, issue.charAt(0).toLowerCase() + issue.slice(1), remedy)
  })

export const readSecret = (name: string, remedy: string) =>
  read(name, Config.option(Config.Redacted(name)), remedy)
