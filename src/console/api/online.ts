import { signal } from "@preact/signals"
import { useListener } from "./listen.ts"

/** Whether the browser reports a network connection. */
export const isOnline = signal(navigator.onLine)

const listeners = new Set<() => void>()

/** Announces that the gateway is reachable again, so that failed reads are repeated. */
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

/** Calls the function each time the gateway becomes reachable again while the component is mounted. */
export const useBack = (handle: () => void): void => useListener(listeners, handle)
