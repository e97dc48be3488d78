import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { temporaryFolder } from "./temporaryFolder.ts"

/** A schema folder with migrations and with files of functions. */
export const schemaFolder = (
  files: Record<string, string>,
  functions: Record<string, string> = {},
  upgrade = "select 1"
) =>
  Effect.sync(() => {
    const path = temporaryFolder("migrations")
    const writeTo = (name: string) => {
      mkdirSync(join(path, name))
      return (files: Record<string, string>) => {
        for (const [file, text] of Object.entries(files)) {
          writeFileSync(join(path, name, file), text)
        }
      }
    }
    const [write, writeFunctions] = [writeTo("migrations"), writeTo("functions")]
    writeFileSync(join(path, "upgrade.sql"), upgrade)
    write(files)
    writeFunctions(functions)
    // Without a trailing slash, as callers may write it
    return { path, write, writeFunctions, options: { directory: pathToFileURL(path) } }
  })
