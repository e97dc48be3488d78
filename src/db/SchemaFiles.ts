import { Effect, Schema } from "effect"
import { createHash } from "node:crypto"
import { readFile, readdir } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { errorCode } from "../domain/ErrorCode.ts"

/** The schema cannot be brought up to date. The message says what to do. */
export class MigrationError extends Schema.TaggedError<MigrationError>()("MigrationError", {
  migration: Schema.String,
  fault: Schema.String,
  remedy: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  override get message(): string {
    return `Migration ${this.migration}: ${this.fault}. ${this.remedy}.`
  }
}

export const migrationFault = (migration: string, fault: string, remedy: string) =>
  Effect.fail(new MigrationError({ migration, fault, remedy }))

/** A file of `schema/migrations`. It is applied once and never changed afterwards. */
export interface Migration {
  readonly id: number
  readonly name: string
  readonly sha256: string
  readonly text: string
}

/** A file of `schema/functions`. It is applied again when it has changed. */
export interface FunctionFile {
  readonly name: string
  readonly sha256: string
  readonly text: string
}

/** The folder of the program's own schema. */
export const schemaDirectory = new URL("../../schema/", import.meta.url)

const migrationFileName = /^(\d{4})_([a-z0-9_]+)\.sql$/

/** The migrations of a schema folder, in order. */
export const readMigrations = Effect.fnUntraced(function* (directory: URL) {
  const migrations: Array<Migration> = []
  for (const { file, name, sha256, text } of yield* readFolder(directory, "migrations/")) {
    const id = Number(migrationFileName.exec(file)?.[1])
    const expected = migrations.length + 1
    if (id !== expected) {
      const remedy = "Number the files 0001_name.sql, 0002_name.sql and so on"
      return yield* migrationFault(file, `it should have the number ${expected}`, remedy)
    }
    migrations.push({ id, name, sha256, text })
  }
  return migrations
})

/** The function files of a schema folder. */
export const readFunctions = (
  directory: URL
): Effect.Effect<ReadonlyArray<FunctionFile>, MigrationError> => readFolder(directory, "functions/")

/** The text of one file of a schema folder. */
export const readSchemaFile = (directory: URL, file: string) =>
  read(file, () => readFile(new URL(file, withSlash(directory)), "utf8"))

const readFolder = Effect.fnUntraced(function* (directory: URL, folder: string) {
  const url = new URL(folder, withSlash(directory))
  const files = yield* read(fileURLToPath(url), async () =>
    (await readdir(url)).filter((file) => file.endsWith(".sql")).sort()
  )
  return yield* Effect.forEach(
    files,
    (file) =>
      Effect.map(
        read(file, () => readFile(new URL(file, url), "utf8")),
        (text) => ({
          file,
          name: file.slice(0, -".sql".length),
          sha256: createHash("sha256").update(text).digest("hex"),
          text
        })
      ),
    { concurrency: "unbounded" }
  )
})

const withSlash = (directory: URL): URL =>
  directory.pathname.endsWith("/") ? directory : new URL(`${directory.href}/`)

const read = <A>(what: string, promise: () => Promise<A>) =>
  Effect.tryPromise({
    try: promise,
    catch: (cause) =>
      new MigrationError({
        migration: what,
        fault: `it cannot be read (${errorCode(cause) ?? "unknown fault"})`,
        remedy:
          errorCode(cause) === "EMFILE"
            ? "Raise the limit of open files (ulimit -n)"
            : "Install the program with its schema folder",
        cause
      })
  })
