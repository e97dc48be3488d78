import { signal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"

/** Whether the device has a network, as the browser says. */
export const isOnline = signal(navigator.onLine)

const listeners = new Set<() => void>()

/** Tells that the gateway is reached again: what failed meanwhile is read once more. */
export const tellBack = (): void => {
  for (const listener of listeners) listener()
}

globalThis.addEventListener("offline", () => {
  isOnline.value = false
})
globalThis.addEventListener("online", () => {
  isOnline.value = true
  tellBack()
})

/** Calls the function each time that the gateway is reached again, while the component is shown. */
export const useBack = (handle: () => void): void => {
  const newest = useRef(handle)
  newest.current = handle
  useEffect(() => {
    const listener = () => newest.current()
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [])
}
