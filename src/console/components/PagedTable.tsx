import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import type { Pages } from "../api/pages.ts"
import { texts } from "../texts/en.ts"
import { Empty, Loading, ProblemView } from "./States.tsx"

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly isNumber?: boolean
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
  const { caption, columns, empty, fresh = 0, idOf, onFresh, pages } = props
  const { cause, hasMore, isLoading, loadMore, reload, rows } = pages
  // In an empty list nothing moves
  const isFirst = fresh > 0 && rows.length === 0 && !isLoading
  useEffect(() => {
    if (isFirst) onFresh?.()
  }, [isFirst])
  if (rows.length === 0) {
    if (cause !== undefined) return <ProblemView cause={cause} onRetry={reload} />
    if (isLoading) return <Loading />
    if (!hasMore) return <>{empty}</>
  }
  return (
    <>
      {fresh > 0 && (
        <p class="fresh" role="status">
          <button type="button" onClick={onFresh}>
            {texts.table.fresh(fresh)}
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

/** Rows of a few columns; on a narrow screen it scrolls by itself, the page does not. */
export const Table = <T,>({ caption, columns, idOf, rows }: TableProps<T>) => (
  <div class="table" role="region" aria-label={texts.table.scroll(caption)} tabIndex={0}>
    <table>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ isNumber, title }) => (
            <th key={title} scope="col" class={isNumber === true ? "number" : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={idOf(row)}>
            {columns.map(({ cell, isNumber, title }) => (
              <td key={title} class={isNumber === true ? "number" : undefined}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
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
