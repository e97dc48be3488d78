import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import type { Pages } from "../api/pages.ts"
import { texts } from "../texts/en.ts"
import { Empty, LoadingRows, ProblemView } from "./States.tsx"

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly isNumber?: boolean
  /** On a phone the value says by itself what it is. */
  readonly isPlain?: boolean
  /** The menu of the row, at its end; its title is read out only. */
  readonly isEnd?: boolean
}

interface Props<T> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly pages: Pages<T>
  readonly idOf: (row: T) => string
  /** Shown when there is nothing at all. */
  readonly empty: ComponentChildren
  /** How many rows have come since, which are shown when asked for: nothing moves under the reader. */
  readonly fresh?: number
  readonly onFresh?: () => void
}

/** A list of the API, page by page. Rows keep their place; newer ones wait behind a button. */
export const PagedTable = <T,>(props: Props<T>) => {
  const { caption, columns, empty, idOf, pages } = props
  const { cause, hasMore, isLoading, loadMore, missed, reload, rows } = pages
  const { fresh = 0, onFresh = reload } = props
  const waiting = Math.max(fresh, missed)
  // In an empty list nothing moves
  const isFirst = waiting > 0 && rows.length === 0 && !isLoading
  useEffect(() => {
    if (isFirst) onFresh()
  }, [isFirst])
  if (rows.length === 0) {
    if (cause !== undefined) return <ProblemView cause={cause} onRetry={reload} />
    if (isLoading) return <LoadingRows />
    if (!hasMore) return <>{empty}</>
  }
  return (
    <>
      {waiting > 0 && (
        <p class="fresh" role="status">
          <button type="button" class="small" onClick={onFresh}>
            {texts.table.fresh(waiting)}
          </button>
        </p>
      )}
      {rows.length > 0 && <Table {...{ caption, columns, idOf, rows }} />}
      {cause !== undefined && <ProblemView cause={cause} onRetry={loadMore} />}
      {hasMore && cause === undefined && (
        <More isEmpty={rows.length === 0} isLoading={isLoading} onMore={loadMore} />
      )}
    </>
  )
}

interface TableProps<T> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly rows: ReadonlyArray<T>
  readonly idOf: (row: T) => string
}

const classOf = ({ isEnd, isNumber }: Column<never>): string | undefined => {
  if (isEnd === true) return "end"
  return isNumber === true ? "number" : undefined
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

interface MoreProps {
  readonly isEmpty: boolean
  readonly isLoading: boolean
  readonly onMore: () => void
}

/** A filtered page reads a bounded number of rows, so an empty one may have further ones behind it. */
const More = ({ isEmpty, isLoading, onMore }: MoreProps) => {
  const label = isEmpty ? texts.table.searchOn : texts.table.more
  return (
    <div class="more">
      {isEmpty && !isLoading && <Empty title={texts.table.searching} />}
      <button type="button" disabled={isLoading} onClick={onMore}>
        {isLoading ? texts.table.loadingMore : label}
      </button>
    </div>
  )
}
