import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Config, Effect, FileSystem, Option, Redacted, Schema } from "effect"

/**
 * Invalid variables, one per line: name, fault and remedy. They stop the startup.
 * docs/reference/configuration.md#rules-of-values
 */
export class ConfigFault extends Schema.TaggedError<ConfigFault>()("ConfigFault", {
  message: Schema.String
}) {}

export const fault = (name: string, problem: string, remedy: string): ConfigFault =>
  new ConfigFault({ message: `${name}: ${problem}; ${remedy}` })

/** The faults together, each in its line. */
export const together = (faults: ReadonlyArray<ConfigFault>): ConfigFault =>
  new ConfigFault({ message: faults.map(({ message }) => message).join("\n") })

type Settings = Readonly<Record<string, Effect.Effect<unknown, ConfigFault>>>

/** Reads all of these settings, and fails with the faults of all of them. */
export function every<const Given extends Settings>(
  settings: Given
): Effect.Effect<{ readonly [Name in keyof Given]: Effect.Success<Given[Name]> }, ConfigFault>
export function every(settings: Settings): Effect.Effect<object, ConfigFault> {
  const read = Effect.validate(Object.entries(settings), ([name, setting]) =>
    Effect.map(setting, (value) => [name, value] as const)
  )
  return Effect.mapBoth(read, { onFailure: together, onSuccess: Object.fromEntries })
}

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
