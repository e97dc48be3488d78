import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { runFolderPrefix, stopServer, stopStaleServers } from "./postgresProcess.ts"

/**
 * One Postgres a run. It is started by the first test that asks for it (`postgresServer.ts`) in the
 * folder made here, and ended here by its pid file; one that a killed run left behind is ended now.
 */
export default async function setup(project: TestProject) {
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
