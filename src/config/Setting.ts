import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Config, Effect, FileSystem, Option, Redacted, Schema } from "effect"

/**
 * An invalid variable in one line: name, fault and remedy. It stops the startup.
 * docs/reference/configuration.md#rules-of-values
 */
export class ConfigFault extends Schema.TaggedError<ConfigFault>()("ConfigFault", {
  message: Schema.String
}) {}

export const fault = (name: string, problem: string, remedy: string): ConfigFault =>
  new ConfigFault({ message: `${name}: ${problem}; ${remedy}` })

/** Reads one variable. A fault is reported with the `remedy`. */
export const read = <A>(name: string, config: Config.Config<A>, remedy: string) =>
  Effect.mapError(config, (error) => {
    const issue = /^(?:SchemaError\()?(.*?)(?:\n|\)$|$)/u.exec(error.message)?.[1] ?? error.message
    return fault(name, issue.charAt(0).toLowerCase() + issue.slice(1), remedy)
  })

/**
 * A secret: the value of `name`, or the content of the file named by `name_FILE`.
 * docs/reference/configuration.md#secrets-in-files
 */
export const readSecret = (name: string, remedy: string) =>
  Effect.gen(function* () {
    const given = yield* read(name, Config.option(Config.Redacted(name)), remedy)
    const variable = `${name}_FILE`
    const file = yield* read(variable, Config.option(Config.NonEmptyString(variable)), fileRemedy)
    if (Option.isNone(file)) return given
    if (Option.isSome(given)) {
      return yield* fault(variable, `${name} is also set`, "set one of the two")
    }
    return Option.some(yield* readSecretFile(variable, file.value))
  })

const fileRemedy = "set the path of a file that the service can read"

const readSecretFile = (variable: string, file: string) =>
  Effect.gen(function* () {
    const { readFileString } = yield* FileSystem.FileSystem
    const text = yield* Effect.mapError(readFileString(file), ({ message }) =>
      fault(variable, message, fileRemedy)
    )
    // Editors and `echo` add a line end
    const secret = text.replace(/[\r\n]+$/u, "")
    if (secret === "") return yield* fault(variable, `${file} is empty`, fileRemedy)
    // A header cannot contain a line end, so every request would fail. A list of keys may continue after a comma
    if (/[^,\s][^\S\r\n]*[\r\n]/u.test(secret)) {
      return yield* fault(variable, `${file} has more than one line`, fileRemedy)
    }
    return Redacted.make(secret)
  }).pipe(Effect.provide(NodeFileSystem.layer))
