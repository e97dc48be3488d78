import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { projectFolder } from "../spawnService.ts"

const folders = ["docs", "bench", "deploy", "examples", "schema", "src", "test"]

/** Every Markdown file of the project, by its path from the root. */
export const documents: ReadonlyArray<string> = [
  ...readdirSync(projectFolder),
  ...folders
    .filter((folder) => existsSync(join(projectFolder, folder)))
    .flatMap((folder) =>
      readdirSync(join(projectFolder, folder), { recursive: true, encoding: "utf8" }).map(
        (name) => `${folder}/${name}`
      )
    )
].filter((path) => path.endsWith(".md") && !path.split("/").includes("node_modules"))

export const readDocument = (path: string): string =>
  readFileSync(join(projectFolder, path), "utf8")
