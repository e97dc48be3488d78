import { constraintsOf, descriptionOf, plainSchema } from "../../components/form/schema.ts"
import type { JsonSchema } from "../../components/form/schema.ts"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { None } from "../../components/Values.tsx"
import { texts } from "../../texts/en.ts"
import { modelTexts } from "../../texts/en/models.ts"

const words = modelTexts

interface FieldRow {
  readonly name: string
  readonly schema: JsonSchema
  readonly isRequired: boolean
}

const typeOf = ({ enum: values, items, type }: JsonSchema): string => {
  if (values !== undefined) return values.map((it) => JSON.stringify(it)).join(", ")
  const name = typeof type === "string" ? type : (type ?? []).join(", ")
  return items === undefined ? name : words.listOf(typeOf(plainSchema(items)) || words.values)
}

const itemsOf = ({ maxItems, minItems }: JsonSchema): string =>
  maxItems === undefined && minItems === undefined ? "" : words.items(minItems ?? 0, maxItems)

const columns: ReadonlyArray<Column<FieldRow>> = [
  {
    title: words.field,
    isPlain: true,
    cell: ({ isRequired, name }) => (
      <>
        <code>{name}</code>
        {isRequired && <div class="faint">{texts.form.required}</div>}
      </>
    )
  },
  { title: words.type, cell: ({ schema }) => <code>{typeOf(schema)}</code> },
  {
    title: words.limits,
    cell: ({ schema }) =>
      [constraintsOf(schema), itemsOf(schema)].filter(Boolean).join(", ") || <None />
  },
  {
    title: words.byDefault,
    cell: ({ schema }) =>
      schema.default === undefined ? <None /> : <code>{JSON.stringify(schema.default)}</code>
  },
  { title: words.description, cell: ({ schema }) => descriptionOf(schema) }
]

/** The fields of a body, required fields first. */
export const SchemaTable = ({ schema }: { readonly schema: JsonSchema }) => {
  const required = new Set(schema.required)
  const rows = Object.entries(schema.properties ?? {})
    .map(([name, it]) => ({ name, schema: plainSchema(it), isRequired: required.has(name) }))
    .sort((one, other) => Number(other.isRequired) - Number(one.isRequired))
  return rows.length === 0 ? null : (
    <Table caption={words.fields} columns={columns} rows={rows} idOf={({ name }) => name} />
  )
}
