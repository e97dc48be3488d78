import { useEffect, useRef } from "preact/hooks"

const pollMillis = 5000

/** Reloads every five seconds while the page is visible, for data that no event stream reports. */
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
