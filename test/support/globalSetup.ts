import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { ensureConsole } from "../../src/cli/console/buildConsole.ts"
import { runFolderPrefix, stopServer, stopStaleServers } from "./postgresProcess.ts"

/**
 * Builds the console if necessary. There is one Postgres per run: the first test that needs it starts it
 * (`postgresProcess.ts`) in the folder created here. This stops it by its pid file, along with servers that killed runs
 * left behind.
 */
export default async function setup(project: TestProject) {
  await ensureConsole()
  await stopStaleServers()
  const folder = await mkdtemp(join(tmpdir(), `${runFolderPrefix}${process.pid}-`))
  project.provide("postgresFolder", folder)
  return async () => {
    await stopServer(folder)
    await rm(folder, { recursive: true, force: true })
  }
}

declare module "vitest" {
  export interface ProvidedContext {
    postgresFolder: string
  }
}
