import { subscribe } from "node:diagnostics_channel"
import { pause } from "./until.ts"

/** Real milliseconds after which an exchange counts as one that a test leaves open. */
const settleMillis = 1000

/** The requests of this process that have no end yet, with the real time at which each began. */
const open = new Map<object, number>()

interface Message {
  readonly request: object
}
subscribe("undici:request:create", (message) =>
  open.set((message as Message).request, performance.now())
)
for (const end of ["undici:request:trailers", "undici:request:error"]) {
  subscribe(end, (message) => open.delete((message as Message).request))
}

/**
 * Waits until the requests of this process have ended, for at most `settleMillis`. A virtual clock that moved
 * meanwhile would end them by their time-outs on a busy machine.
 */
export const exchangesSettled = async (): Promise<void> => {
  const until = performance.now() + settleMillis
  const isNew = (began: number) => performance.now() < Math.min(until, began + settleMillis)
  while (Array.from(open.values()).some(isNew)) await pause(2)
}
