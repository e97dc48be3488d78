import type { Schemas } from "../../api/schema.ts"
import { Table } from "../../components/list/PagedTable.tsx"
import type { Column } from "../../components/list/PagedTable.tsx"
import { operatorTexts } from "../../texts/en/operator.ts"

const words = operatorTexts.catalog

type Change = Schemas["CatalogChange"]

interface Row {
  readonly name: Schemas["CatalogRowName"]
  readonly what: "added" | "removed" | "changed"
  readonly changes: Change["changes"]
}

const tones = { added: "good", removed: "bad", changed: "going" } as const

/** A catalog value as text. */
const Value = ({ of }: { readonly of: unknown }) => (
  <code>{typeof of === "string" ? of : JSON.stringify(of)}</code>
)

const columns: ReadonlyArray<Column<Row>> = [
  {
    title: words.row,
    cell: ({ name: { id, type } }) => (
      <>
        <strong>{id}</strong>
        <div class="faint">{words.kinds[type]}</div>
      </>
    )
  },
  {
    title: words.change,
    cell: ({ what }) => <span class={`status ${tones[what]}`}>{words[what]}</span>
  },
  {
    title: words.values,
    cell: ({ changes }) =>
      changes.map(({ after, before, pointer }) => (
        <div key={pointer}>
          <code>{pointer}</code> {words.before} <Value of={before} /> {words.after}{" "}
          <Value of={after} />
        </div>
      ))
  }
]

export const rowsOf = ({
  added,
  changed,
  removed
}: Schemas["CatalogReload"]["difference"]): ReadonlyArray<Row> => [
  ...added.map((name) => ({ name, what: "added" as const, changes: [] })),
  ...removed.map((name) => ({ name, what: "removed" as const, changes: [] })),
  ...changed.map(({ changes, id, type }) => ({
    name: { id, type },
    what: "changed" as const,
    changes
  }))
]

/** The changes that the catalog file would make. */
export const Difference = ({ rows }: { readonly rows: ReadonlyArray<Row> }) => (
  <Table
    caption={words.caption}
    columns={columns}
    rows={rows}
    idOf={({ name: { id, type }, what }) => `${what} ${type} ${id}`}
  />
)
