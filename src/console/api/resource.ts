import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { useBack } from "./online.ts"

/** The state of data that a page loads. While it is reloaded, the previous data stay visible. */
export interface Resource<T> {
  readonly data: T | undefined
  readonly cause: unknown
  readonly reload: () => void
  /** Replaces the data, for example with those of a live event. */
  readonly set: (data: T) => void
}

/** Loads initially and whenever the key changes. A response for an earlier key is dropped. */
export const useResource = <T>(key: string, load: () => Promise<T>): Resource<T> => {
  const [state, setState] = useState<{ key: string; data?: T; cause?: unknown }>({ key })
  const newest = useRef({ load, round: 0 })
  newest.current.load = load
  const reload = useCallback(() => {
    newest.current.round += 1
    const { round } = newest.current
    const end = (part: { data: T } | { cause: unknown }) => {
      if (newest.current.round !== round) return
      setState((before) => ({
        ...("cause" in part && before.key === key && before.data !== undefined
          ? { data: before.data }
          : {}),
        ...part,
        key
      }))
    }
    newest.current.load().then(
      (data) => end({ data }),
      (cause: unknown) => end({ cause })
    )
  }, [key])
  useEffect(() => {
    reload()
    return () => {
      newest.current.round += 1
    }
  }, [reload])
  useBack(() => {
    if (state.cause !== undefined) reload()
  })
  const set = useCallback((data: T) => setState({ key, data }), [key])
  const isCurrent = state.key === key
  return {
    data: isCurrent ? state.data : undefined,
    cause: isCurrent ? state.cause : undefined,
    reload,
    set
  }
}

/** A part of the program. A browser may cache that it failed to load, so a retry reloads the page. */
export const useChunk = <T>(key: string, load: () => Promise<T>): Resource<T> => ({
  ...useResource(key, load),
  reload: () => globalThis.location.reload()
})
