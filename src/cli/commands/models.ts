import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Management } from "../Management.ts"
import { failed } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { details, table } from "../terminal/Table.ts"
import { readList } from "./Lists.ts"

/** A row of `GET /manage/v1/models`: a model with the price of one period. */
export const ModelRow = Schema.Struct({
  type: Schema.Literals(["media", "token"]),
  vendor: Schema.String,
  model: Schema.String,
  path: Schema.String,
  sandbox: Schema.Boolean,
  result: Schema.optionalKey(Schema.String),
  price: Schema.Json,
  valid_from: Schema.NullOr(Schema.String),
  valid_until: Schema.NullOr(Schema.String),
  body_schema: Schema.Record(Schema.String, Schema.Json),
  media: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.Struct({ kind: Schema.String, inline: Schema.Boolean }))
  )
})
export type ModelRow = typeof ModelRow.Type

const rowsMax = 10_000

const all = readList(
  { path: "/manage/v1/models", as: "either", limit: rowsMax, cursor: Option.none() },
  ModelRow
)

export const modelName = Argument.String("model").pipe(
  Argument.withDescription("vendor/model, or only the model if a single vendor has it")
)

/** The rows of one model, one for each period of its price. */
export const findModel = Effect.fnUntraced(function* (name: string) {
  const { document, rows } = yield* all
  const found = rows.filter(({ model, vendor }) => `${vendor}/${model}` === name || model === name)
  const vendors = new Set(found.map(({ vendor }) => vendor))
  const [first] = found
  if (first === undefined) {
    return yield* failed(
      `There is no model ${JSON.stringify(name)}`,
      "`gateway models list` shows all models"
    )
  }
  if (vendors.size > 1) {
    return yield* failed(
      `${name} is a model of ${[...vendors].join(" and ")}`,
      `Name the vendor too, such as ${first.vendor}/${name}`
    )
  }
  const documents = document.data.filter(
    (_, at) => rows[at] !== undefined && found.includes(rows[at])
  )
  return { row: first, rows: found, documents }
})

const list = Command.make(
  "list",
  {
    type: Flag.Literals("type", ["media", "token"]).pipe(
      Flag.withDescription("media: tasks; token: calls charged by the token"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ type }) {
    const { document, rows } = yield* all
    const isWanted = (row: ModelRow | undefined) =>
      row !== undefined && (Option.isNone(type) || row.type === type.value)
    const data = document.data.filter((_, at) => isWanted(rows[at]))
    const text = table(rows.filter(isWanted), [
      { title: "MODEL", of: (it) => `${it.vendor}/${it.model}` },
      { title: "TYPE", of: (it) => it.type },
      { title: "MAKES", of: (it) => it.result ?? "text" },
      { title: "SANDBOX", of: (it) => (it.sandbox ? "yes" : "") },
      { title: "PATH", of: (it) => it.path }
    ])
    yield* print({ data, next_cursor: null }, text)
  })
).pipe(Command.withDescription("List models with their prices"))

/** Limits of a JSON Schema, if there are any. */
const Fields = Schema.Struct({
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  properties: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.Struct({
        type: Schema.optionalKey(Schema.Json),
        description: Schema.optionalKey(Schema.String)
      })
    )
  )
})
const decodeFields = Schema.decodeUnknownOption(Fields)

const show = Command.make(
  "show",
  { model: modelName },
  Effect.fnUntraced(function* ({ model }) {
    const { documents, row, rows } = yield* findModel(model)
    const fields = Option.getOrElse(decodeFields(row.body_schema), (): typeof Fields.Type => ({}))
    const required = new Set(fields.required)
    const text = [
      details([
        ["model", `${row.vendor}/${row.model}`],
        ["type", row.type],
        ["path", row.path],
        ["sandbox", row.sandbox],
        ...rows.map(
          (it) =>
            [
              `price${it.valid_from === null ? "" : ` from ${it.valid_from}`}`,
              JSON.stringify(it.price)
            ] as const
        )
      ]),
      "",
      table(Object.entries(fields.properties ?? {}), [
        { title: "FIELD", of: ([name]) => name },
        { title: "TYPE", of: ([name, it]) => row.media?.[name]?.kind ?? typeOf(it.type) },
        { title: "REQUIRED", of: ([name]) => (required.has(name) ? "yes" : "") }
      ])
    ].join("\n")
    yield* print({ data: documents }, text)
  })
).pipe(Command.withDescription("Show the prices and body fields of a model"))

const typeOf = (type: Schema.Json | undefined): string =>
  typeof type === "string" ? type : type === undefined ? "" : JSON.stringify(type)

/** docs/reference/models.md */
export const models = Command.make("models").pipe(
  Command.withDescription("Models and their prices"),
  Command.withSubcommands([list, show]),
  Command.provide(Management.layer)
)
