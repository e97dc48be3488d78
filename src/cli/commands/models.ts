import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Management } from "../Management.ts"
import type { Answer } from "../Management.ts"
import { failed } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { details, table } from "../terminal/Table.ts"
import { check } from "./checkModel.ts"
import { importModel } from "./importModel.ts"
import { readList } from "./Lists.ts"

/** A model with the price of one period. */
export type ModelRow = Answer<"listModels">["data"][number]

const rowsMax = 10_000

const all = Effect.map(
  readList((api, query) => api.call("listModels", { as: "either", query }), {
    limit: rowsMax,
    cursor: Option.none()
  }),
  ({ data }) => data
)

export const modelName = Argument.String("model").pipe(
  Argument.withDescription("vendor/model, or only the model if a single vendor has it")
)

/** The rows of one model, one per price period. */
export const findModel = Effect.fnUntraced(function* (name: string) {
  const found = (yield* all).filter(
    ({ model, vendor }) => `${vendor}/${model}` === name || model === name
  )
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
  return { row: first, rows: found }
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
    const data = (yield* all).filter((it) => Option.isNone(type) || it.type === type.value)
    const text = table(data, [
      { title: "MODEL", of: (it) => `${it.vendor}/${it.model}` },
      { title: "TYPE", of: (it) => it.type },
      { title: "MAKES", of: (it) => (it.type === "media" ? it.result : "text") },
      { title: "SANDBOX", of: (it) => (it.sandbox ? "yes" : "") }
    ])
    yield* print({ data, next_cursor: null }, text)
  })
).pipe(Command.withDescription("List models with their prices"))

/** The kind of media that each field accepts. */
export const kindsOf = (row: ModelRow): Readonly<Record<string, string>> =>
  Object.fromEntries(
    row.type === "media" ? Object.entries(row.media).map(([name, { kind }]) => [name, kind]) : []
  )

/** The properties of a JSON Schema, if it has any. */
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
    const { row, rows } = yield* findModel(model)
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
        { title: "TYPE", of: ([name, it]) => kindsOf(row)[name] ?? typeOf(it.type) },
        { title: "REQUIRED", of: ([name]) => (required.has(name) ? "yes" : "") }
      ])
    ].join("\n")
    yield* print({ data: rows }, text)
  })
).pipe(Command.withDescription("Show the prices and body fields of a model"))

const typeOf = (type: Schema.Json | undefined): string =>
  typeof type === "string" ? type : type === undefined ? "" : JSON.stringify(type)

/** docs/reference/models.md */
export const models = Command.make("models").pipe(
  Command.withDescription("Models and their prices"),
  Command.withSubcommands([
    Command.provide(list, Management.layer),
    Command.provide(show, Management.layer),
    check,
    importModel
  ])
)
