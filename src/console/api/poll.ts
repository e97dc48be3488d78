import { useEffect, useRef } from "preact/hooks"

const pollMillis = 5000

/** Reads again every five seconds while the page is seen. The operator has no stream of events. */
export const usePoll = (reload: () => void): void => {
  const newest = useRef(reload)
  newest.current = reload
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") newest.current()
    }, pollMillis)
    return () => clearInterval(timer)
  }, [])
}
