import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { readFile } from "../../catalog/CatalogSource.ts"
import { CommandFault } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"

const check = Command.make(
  "check",
  {
    file: Argument.File("file", { mustExist: false }).pipe(
      Argument.withDescription("A catalog file, as for CATALOG_FILE")
    )
  },
  Effect.fnUntraced(function* ({ file }) {
    const content = yield* Effect.mapError(
      readFile(file),
      ({ errors }) =>
        new CommandFault({
          message: [
            `${file}: ${errors.length === 1 ? "1 fault" : `${errors.length} faults`}`,
            ...errors.map(({ detail, pointer }) => `  ${pointer}: ${detail}`)
          ].join("\n"),
          remedy: "Correct the file at these places",
          problem: { file, errors: errors.map(({ detail, pointer }) => ({ pointer, detail })) }
        })
    )
    const { hash } = content
    const count = content.content.models.length
    yield* print(
      { file, hash, models: count, errors: [] },
      `${file} is valid: ${count} media models, hash ${hash}`
    )
  })
).pipe(Command.withDescription("Check a catalog file offline and list every fault"))

/** docs/catalog.md */
export const catalog = Command.make("catalog").pipe(
  Command.withDescription("Catalog files"),
  Command.withSubcommands([check])
)
