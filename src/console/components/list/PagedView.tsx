import type { ComponentChildren } from "preact"
import { useEffect } from "preact/hooks"
import type { Pages } from "../../api/pages.ts"
import { texts } from "../../texts/en.ts"
import { Empty, LoadingRows, ProblemView } from "../States.tsx"

export interface PagedProps<T> {
  readonly pages: Pages<T>
  readonly words: ListWords
  /** The filters that are set. */
  readonly search?: object
}

/** The texts of a list. */
interface ListWords {
  readonly empty: string
  readonly emptyDetail?: string | undefined
  /** Why a list with filters is empty. */
  readonly noMatch?: string
}

interface Props<T> extends PagedProps<T> {
  readonly children: ComponentChildren
  /** What to do in an empty list. */
  readonly first?: ComponentChildren
}

/** A paged API list, rendered by its children. Rows keep their place; newer rows wait behind a button. */
export const PagedView = <T,>({ children, first, pages, search = {}, words }: Props<T>) => {
  const { cause, hasMore, isLoading, loadMore, missed, reload, rows } = pages
  // In an empty list nothing can move
  const isFirst = missed > 0 && rows.length === 0 && !isLoading
  useEffect(() => {
    if (isFirst) reload()
  }, [isFirst])
  if (rows.length === 0) {
    if (cause !== undefined) return <ProblemView cause={cause} onRetry={reload} />
    if (isLoading) return <LoadingRows />
    if (!hasMore && Object.keys(search).length > 0) {
      return <Empty title={words.noMatch ?? words.empty} />
    }
    if (!hasMore) {
      return (
        <Empty title={words.empty} detail={words.emptyDetail}>
          {first}
        </Empty>
      )
    }
  }
  return (
    <>
      {missed > 0 && (
        <p class="fresh" role="status">
          <button type="button" class="small" onClick={reload}>
            {texts.table.fresh(missed)}
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
        {isLoading ? texts.states.loading : label}
      </button>
    </div>
  )
}
