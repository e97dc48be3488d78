import { signal } from "@preact/signals"
import { viewedUser } from "../router/location.ts"
import { basePath } from "./address.ts"
import { api } from "./client.ts"
import { useListener } from "./listen.ts"
import { isOnline, tellBack } from "./online.ts"
import type { Schemas } from "./schema.ts"

export type LiveEvent =
  | { readonly type: "task"; readonly data: Schemas["TaskListItem"] }
  | { readonly type: "delivery"; readonly data: Schemas["WebhookDelivery"] }
  | { readonly type: "wallet"; readonly data: Schemas["Wallet"] }
  /** The stream is failing, so pages have to reload what they show. */
  | { readonly type: "poll" }

/** `off`: nobody with a stream is signed in. */
export const liveState = signal<"off" | "connecting" | "live" | "polling" | "offline">("off")

/** The current wallet, from the stream or from polling. */
export const wallet = signal<Schemas["Wallet"] | undefined>(undefined)

const listeners = new Set<(event: LiveEvent) => void>()

const publish = (event: LiveEvent): void => {
  if (event.type === "wallet") wallet.value = event.data
  for (const listener of listeners) listener(event)
}

const pollSeconds = 5
/** After this many polls the stream is tried again. */
const pollsBeforeRetry = 6

const poll = async (): Promise<void> => {
  const found = await api.GET("/manage/v1/wallet", {}).catch(() => undefined)
  if (found !== undefined) publish({ type: "wallet", data: found })
  publish({ type: "poll" })
}

/**
 * Follows the user's events until it is stopped. A hidden page has no stream, because a browser opens only a few
 * connections per host. Each new stream starts with the complete current state, so nothing is missed.
 */
export const followLive = (): (() => void) => {
  let source: EventSource | undefined
  let timer: ReturnType<typeof setInterval> | undefined
  const stopPolling = () => {
    clearInterval(timer)
    timer = undefined
  }
  const fallBack = () => {
    source?.close()
    liveState.value = "polling"
    let polls = 0
    const next = () => {
      polls += 1
      if (polls > pollsBeforeRetry) open()
      else void poll()
    }
    stopPolling()
    timer = setInterval(next, pollSeconds * 1000)
    next()
  }
  const open = () => {
    stopPolling()
    if (liveState.value !== "polling") liveState.value = "connecting"
    const user = viewedUser()
    const query = user === undefined ? "" : `?user_id=${encodeURIComponent(user)}`
    source = new EventSource(`${basePath}/manage/v1/events${query}`)
    source.addEventListener("open", () => {
      if (liveState.value === "polling") tellBack()
      liveState.value = "live"
    })
    source.addEventListener("message", ({ data }) => {
      publish(JSON.parse(String(data)))
    })
    source.addEventListener("error", fallBack)
  }
  const close = () => {
    source?.close()
    source = undefined
    stopPolling()
  }
  const begin = () => {
    close()
    if (!isOnline.value) liveState.value = "offline"
    else if (document.visibilityState === "visible") open()
  }
  document.addEventListener("visibilitychange", begin)
  // Subscribing calls `begin` immediately
  const stopWatching = isOnline.subscribe(begin)
  return () => {
    document.removeEventListener("visibilitychange", begin)
    stopWatching()
    close()
    liveState.value = "off"
    wallet.value = undefined
  }
}

/** Calls the function with each event while the component is mounted. */
export const useLive = (handle: (event: LiveEvent) => void): void => useListener(listeners, handle)
