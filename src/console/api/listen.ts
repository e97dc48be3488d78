import { useEffect, useRef } from "preact/hooks"

/** Calls the newest function with each event while the component is mounted. */
export const useListener = <Event>(
  listeners: Set<(event: Event) => void>,
  handle: (event: Event) => void
): void => {
  const newest = useRef(handle)
  newest.current = handle
  useEffect(() => {
    const listener = (event: Event) => newest.current(event)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [])
}
