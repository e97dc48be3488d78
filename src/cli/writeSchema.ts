import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { schemaFiles } from "../http/openapi/SchemaFiles.ts"

/** `npm run schema`: writes the files of `schema/` that are generated from the code. */
const main = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(new URL("../../schema", import.meta.url))
  for (const [name, text] of yield* schemaFiles) {
    const file = path.join(folder, name)
    yield* files.makeDirectory(path.dirname(file), { recursive: true })
    yield* files.writeFileString(file, text)
  }
})

NodeRuntime.runMain(main.pipe(Effect.provide(NodeServices.layer)))
