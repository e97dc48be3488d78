import { useState } from "preact/hooks"

/** Rows that were added since the list was read. They are shown when the user asks for them. */
export interface Fresh {
  readonly count: number
  readonly add: (id: string) => void
  /** Reads the list again. */
  readonly show: () => void
}

/** `key` identifies the search; fresh rows of an earlier key are forgotten. */
export const useFresh = (key: string, reload: () => void): Fresh => {
  const [state, setState] = useState<{ readonly key: string; readonly ids: ReadonlySet<string> }>({
    key,
    ids: new Set()
  })
  return {
    count: state.key === key ? state.ids.size : 0,
    add: (id) => setState((it) => ({ key, ids: new Set([...(it.key === key ? it.ids : []), id]) })),
    show: () => {
      setState({ key, ids: new Set() })
      reload()
    }
  }
}
