import { readFileSync } from "node:fs"
import { join } from "node:path"

/** The folder with the packages of these tests. */
export const modules = join(import.meta.dirname, "node_modules")

export const versionOf = (name: string): string =>
  JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version
