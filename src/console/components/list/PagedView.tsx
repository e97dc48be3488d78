import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import type { Pages } from "../../api/pages.ts"
import { texts } from "../../texts/en.ts"
import { Empty, LoadingRows, ProblemView } from "../States.tsx"

export interface PagedProps<T> {
  readonly pages: Pages<T>
  /** Shown when the list is empty. */
  readonly empty: ComponentChildren
  /** The number of rows added since. They are shown on request, so that nothing moves while the user reads. */
  readonly fresh?: number
  readonly onFresh?: () => void
}

/** A paged API list, rendered by its children. Rows keep their place; newer rows wait behind a button. */
export const PagedView = <T,>(props: PagedProps<T> & { readonly children: ComponentChildren }) => {
  const { children, empty, pages } = props
  const { cause, hasMore, isLoading, loadMore, missed, reload, rows } = pages
  const { fresh = 0, onFresh = reload } = props
  const waiting = Math.max(fresh, missed)
  // In an empty list nothing can move
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
      {rows.length > 0 && children}
      {cause !== undefined && <ProblemView cause={cause} onRetry={loadMore} />}
      {hasMore && cause === undefined && (
        <More isEmpty={rows.length === 0} isLoading={isLoading} onMore={loadMore} />
      )}
    </>
  )
}

interface MoreProps {
  readonly isEmpty: boolean
  readonly isLoading: boolean
  readonly onMore: () => void
}

/** A filtered page reads a limited number of rows, so more rows may follow an empty page. */
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
