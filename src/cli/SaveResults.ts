import { Effect, FileSystem, Path } from "effect"
import { HttpClient } from "effect/http"
import { accessSync, constants } from "node:fs"
import { extensionOf } from "../catalog/media/Formats.ts"
import { makeFolder } from "../db/MakeFolder.ts"
import type { TaskResult } from "../domain/task/Task.ts"
import { failed } from "./terminal/Fault.ts"

/** The URIs of a result. */
export const resultsOf = (task: TaskResult): ReadonlyArray<string> =>
  task.images ?? task.videos ?? task.audios ?? task.meshes ?? task.documents ?? []

const unusable = (folder: string, { message }: { readonly message: string }) =>
  failed(`${folder}: ${message}`, "Use --out to name a writable folder")

/** Creates the folder of results. Fails if it cannot be written to, so before a task is bought for it. */
export const makeWritable = (folder: string) =>
  Effect.try({
    try: () => {
      makeFolder(folder, 0o777)
      accessSync(folder, constants.W_OK)
    },
    catch: (cause) => unusable(folder, cause instanceof Error ? cause : { message: String(cause) })
  })

/**
 * Downloads the media of a task into a folder. Each file is named after the task, so an existing file is the same
 * medium and is overwritten.
 */
export const saveResults = Effect.fnUntraced(function* (task: TaskResult, folder: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const http = yield* HttpClient.HttpClient
  const usable = Effect.mapError((error: { readonly message: string }) => unusable(folder, error))
  yield* makeWritable(folder)
  return yield* Effect.forEach(resultsOf(task), (url, at) =>
    Effect.gen(function* () {
      const response = yield* http.get(url)
      if (response.status !== 200) return yield* notThere(url, `HTTP ${response.status}`)
      const type = response.headers["content-type"]?.split(";")[0]?.trim() ?? ""
      const name = `${task.task_info.id}-${at + 1}.${extensionOf(type)}`
      const bytes = new Uint8Array(yield* response.arrayBuffer)
      const file = path.join(folder, name)
      // Written under another name first, so that the file is complete or absent
      yield* usable(files.writeFile(`${file}.part`, bytes))
      yield* usable(files.rename(`${file}.part`, file))
      return file
    }).pipe(Effect.catchTag("HttpClientError", ({ message }) => notThere(url, message)))
  )
})

const notThere = (url: string, why: string) =>
  failed(
    `The result cannot be downloaded (${why}): ${url.split("?")[0]}`,
    "Results are kept for 24 hours; check BASE_URL of the service, with which the address starts"
  )
