import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { errorsDocument } from "../http/openapi/ErrorsDocument.ts"
import { schemaFiles } from "../http/openapi/SchemaFiles.ts"
import { clientTypes } from "./client/clientTypes.ts"

/**
 * `npm run schema`: writes the files that are generated from the code: `schema/`, the error codes in `docs`, and the
 * types of the client.
 */
const main = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const project = yield* path.fromFileUrl(new URL("../../", import.meta.url))
  const schemas = yield* schemaFiles
  const generated = [
    ...[...schemas].map(([name, text]) => [`schema/${name}`, text] as const),
    ["docs/errors.md", errorsDocument] as const,
    ["src/client/schema.ts", clientTypes(JSON.parse(schemas.get("openapi.json") ?? "{}"))] as const
  ]
  for (const [name, text] of generated) {
    const file = path.join(project, name)
    yield* files.makeDirectory(path.dirname(file), { recursive: true })
    yield* files.writeFileString(file, text)
  }
})

NodeRuntime.runMain(main.pipe(Effect.provide(NodeServices.layer)))
