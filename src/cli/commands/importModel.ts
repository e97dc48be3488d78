import { Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AppConfig } from "../../config/Config.ts"
import { MediaKind } from "../../domain/task/Task.ts"
import { EgressGuard } from "../../egress/EgressGuard.ts"
import { guardedConnector } from "../../Gateway.ts"
import { addRow, importedRow } from "../ModelImport.ts"
import { CommandFault } from "../terminal/Fault.ts"
import { note, print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"

/** The egress guard with the entries of `EGRESS_ALLOW`. */
const guard = Layer.unwrap(
  Effect.map(AppConfig, ({ egressAllow }) =>
    guardedConnector.pipe(Layer.provide(EgressGuard.layer({ allow: egressAllow })))
  )
)

/** `gateway models import`: adds a row for a published model. docs/vendors-as-files.md#import-a-model */
export const importModel = Command.make(
  "import",
  {
    vendor: Argument.Literals("vendor", ["fal", "replicate"]).pipe(
      Argument.withDescription("the vendor that publishes it")
    ),
    id: Argument.String("id").pipe(
      Argument.withDescription("its id there, such as fal-ai/flux/dev or owner/name")
    ),
    file: Flag.String("file").pipe(
      Flag.withDescription("the catalog file to which it is added"),
      Flag.withDefault("catalog.json")
    ),
    model: Flag.String("model").pipe(
      Flag.withDescription("its public name; default: derived from its id"),
      Flag.optional
    ),
    result: Flag.Literals("result", MediaKind.literals).pipe(
      Flag.withDescription("what it makes, if its schema does not say so"),
      Flag.optional
    ),
    from: Flag.String("from").pipe(
      Flag.withMetavar("URL"),
      Flag.withDescription("read the schema from another address, without a key"),
      Flag.optional
    )
  },
  Effect.fnUntraced(
    function* ({ file, from, id, model, result, vendor }) {
      const { notes, row } = yield* importedRow({
        vendor,
        id,
        from: Option.getOrUndefined(from),
        model: Option.getOrUndefined(model),
        result: Option.getOrUndefined(result)
      })
      const pointer = yield* addRow(file, row)
      yield* Effect.forEach(notes, note)
      const name = `${vendor}/${row.model}`
      yield* print(
        { file, model: name, missing: pointer, notes, row },
        [
          details([
            ["model", name],
            ["makes", row.result],
            ["fields", Object.keys(Object(row.body["properties"])).join(", ")],
            ["media", Object.keys(row.media ?? {}).join(", ")]
          ]),
          "",
          `Fill in the price at ${pointer} of ${file}, then reload it: without one it is refused.`
        ].join("\n")
      )
    },
    Effect.scoped,
    Effect.provide(Layer.provideMerge(guard, AppConfig.layer)),
    Effect.catchTag("ConfigFault", ({ message }) => Effect.fail(new CommandFault({ message })))
  )
).pipe(
  Command.withDescription(
    "Add a model of fal or Replicate to a catalog file by its published schema"
  )
)
