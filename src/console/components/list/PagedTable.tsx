import type { ComponentChildren } from "preact"
import { texts } from "../../texts/en.ts"
import { PagedView } from "./PagedView.tsx"
import type { PagedProps } from "./PagedView.tsx"

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly isNumber?: boolean
  /** On a phone the value needs no label. */
  readonly isPlain?: boolean
  /** Hidden where there is little space next to the side bar. */
  readonly isMinor?: boolean
  /** The state of the row, shown first on a phone. */
  readonly isLead?: boolean
  /** The description of the row, shown last on a phone, on a separate line. */
  readonly isAbout?: boolean
  /** The menu at the end of the row. Only screen readers read its title. */
  readonly isEnd?: boolean
}

interface Props<T> extends PagedProps<T> {
  readonly words: PagedProps<T>["words"] & { readonly caption: string }
  readonly columns: ReadonlyArray<Column<T>>
}

/** A table of an API list. */
export const PagedTable = <T extends { readonly id: string }>(props: Props<T>) => {
  const { columns, pages, words } = props
  return (
    <PagedView {...props}>
      <Table caption={words.caption} columns={columns} rows={pages.rows} idOf={({ id }) => id} />
    </PagedView>
  )
}

interface TableProps<T> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly rows: ReadonlyArray<T>
  readonly idOf: (row: T) => string
  /** Shown instead of a table without rows. */
  readonly empty?: ComponentChildren
}

const classOf = (column: Column<never>): string | undefined => {
  if (column.isEnd === true) return "end"
  const names = [
    column.isNumber === true ? "number" : "",
    column.isMinor === true ? "minor" : "",
    column.isLead === true ? "lead" : "",
    column.isAbout === true ? "about" : ""
  ]
  return names.filter(Boolean).join(" ") || undefined
}

/**
 * A table with few columns, shown as cards on a phone. The roles are explicit, because browsers drop them from a table
 * with another layout.
 */
export const Table = <T,>({ caption, columns, empty, idOf, rows }: TableProps<T>) => {
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>
  return (
    <div
      class="table cards-narrow"
      role="region"
      aria-label={texts.table.scroll(caption)}
      tabIndex={0}
    >
      {/* oxlint-disable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */}
      <table role="table">
        <caption class="hidden">{caption}</caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.title} scope="col" role="columnheader" class={classOf(column)}>
                {column.isEnd === true ? <span class="hidden">{column.title}</span> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={idOf(row)} role="row">
              {columns.map((column) => (
                <td
                  key={column.title}
                  role="cell"
                  class={classOf(column)}
                  data-name={
                    column.isPlain === true || column.isEnd === true ? undefined : column.title
                  }
                >
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {/* oxlint-enable jsx-a11y/no-redundant-roles, jsx-a11y/no-interactive-element-to-noninteractive-role */}
    </div>
  )
}
