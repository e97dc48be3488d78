import { subscribe } from "node:diagnostics_channel"
import { pause } from "./until.ts"

/** A test is assumed to keep an exchange open that has been open for this many real milliseconds. */
const settleMillis = 1000

/** The unfinished requests of this process, with the real time at which each began. */
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
 * Waits for at most `settleMillis` until the requests of this process have ended. On a busy machine, a virtual clock
 * that moves in the meantime would end them with a timeout.
 */
export const exchangesSettled = async (): Promise<void> => {
  const until = performance.now() + settleMillis
  const isNew = (began: number) => performance.now() < Math.min(until, began + settleMillis)
  while (Array.from(open.values()).some(isNew)) await pause(2)
}
