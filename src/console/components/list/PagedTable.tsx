import type { ComponentChildren } from "preact"
import { texts } from "../../texts/en.ts"
import { PagedView } from "./PagedView.tsx"
import type { PagedProps } from "./PagedView.tsx"

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly isNumber?: boolean
  /** On a phone the value says by itself what it is. */
  readonly isPlain?: boolean
  /** Not shown where there is little room beside the side bar. */
  readonly isMinor?: boolean
  /** How it stands, which on a phone comes first. */
  readonly isLead?: boolean
  /** What describes the row, which on a phone comes last, on its own line. */
  readonly isAbout?: boolean
  /** The menu of the row, at its end; its title is read out only. */
  readonly isEnd?: boolean
}

interface Props<T> extends PagedProps<T> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly idOf: (row: T) => string
}

/** A list of the API as a table. */
export const PagedTable = <T,>({ caption, columns, idOf, ...paged }: Props<T>) => (
  <PagedView {...paged}>
    <Table {...{ caption, columns, idOf }} rows={paged.pages.rows} />
  </PagedView>
)

interface TableProps<T> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly rows: ReadonlyArray<T>
  readonly idOf: (row: T) => string
}

const classOf = (column: Column<never>): string | undefined => {
  if (column.isEnd === true) return "end"
  const names = [
    column.isNumber === true ? "number" : "",
    column.isMinor === true ? "minor" : "",
    column.isLead === true ? "lead" : "",
    column.isAbout === true ? "about" : ""
  ]
  return names.filter((it) => it !== "").join(" ") || undefined
}

/**
 * Rows of a few columns, on a phone as cards. The roles are written out, because a browser takes them from a
 * table that is laid out as something else.
 */
export const Table = <T,>({ caption, columns, idOf, rows }: TableProps<T>) => (
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
