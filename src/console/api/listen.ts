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

/** Calls a function once for all that happens within the time. */
export const useThrottled = (handle: () => void, millis: number): (() => void) => {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      handle()
    }, millis)
  }
}
