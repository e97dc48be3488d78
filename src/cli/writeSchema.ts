import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { errorsDocument } from "../http/openapi/ErrorsDocument.ts"
import { schemaFiles } from "../http/openapi/SchemaFiles.ts"

/** `npm run schema`: writes the files of `schema/`, and the error codes in `docs`, from the code. */
const main = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const project = yield* path.fromFileUrl(new URL("../../", import.meta.url))
  const generated = [
    ...[...(yield* schemaFiles)].map(([name, text]) => [`schema/${name}`, text] as const),
    ["docs/errors.md", errorsDocument] as const
  ]
  for (const [name, text] of generated) {
    const file = path.join(project, name)
    yield* files.makeDirectory(path.dirname(file), { recursive: true })
    yield* files.writeFileString(file, text)
  }
})

NodeRuntime.runMain(main.pipe(Effect.provide(NodeServices.layer)))
