import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { schemaFiles } from "../http/openapi/SchemaFiles.ts"
import { clientTypes } from "./client/clientTypes.ts"

/** `npm run schema`: writes what is generated from the code, `schema/` and the types of the client. */
const main = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* path.fromFileUrl(new URL("../../schema", import.meta.url))
  for (const [name, text] of yield* schemaFiles) {
    const file = path.join(folder, name)
    yield* files.makeDirectory(path.dirname(file), { recursive: true })
    yield* files.writeFileString(file, text)
    if (name === "openapi.json") {
      yield* files.writeFileString(
        path.join(folder, "../src/client/schema.ts"),
        clientTypes(JSON.parse(text))
      )
    }
  }
})

NodeRuntime.runMain(main.pipe(Effect.provide(NodeServices.layer)))
