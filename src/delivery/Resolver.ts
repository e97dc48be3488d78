import { lookup, Resolver } from "node:dns/promises"
import type { Resolve } from "./EgressConnector.ts"

/**
 * The operating system's look-up holds one of libuv's four threads until it answers, and a silent
 * name server may take half a minute: four such names would stop every other look-up, and file
 * access with it. So names go to the name servers by c-ares, which needs no thread. ADR 0056.
 */
const queryMillis = 3000
const queryTries = 3

/** Look-ups by the operating system under way at once: half of libuv's threads. */
const systemLookupsMax = 2

/** All addresses of a name, without letting one silent name server delay the others. */
export const makeResolve = (
  options: { readonly servers?: ReadonlyArray<string>; readonly timeoutMillis?: number } = {}
): Resolve => {
  const resolver = new Resolver({
    timeout: options.timeoutMillis ?? queryMillis,
    tries: queryTries
  })
  if (options.servers !== undefined) resolver.setServers(options.servers)
  const bySystem = makeSystemResolve()

  return async (host) => {
    // A single label is of the hosts file or of the search domains, which only the system knows.
    if (!host.includes(".")) return bySystem(host)
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    const found = [v4, v6].flatMap((one) => (one.status === "fulfilled" ? one.value : []))
    if (found.length > 0) return found
    const failure = v4.status === "rejected" ? v4.reason : undefined
    if (isSilent(failure)) throw failure
    // The hosts file may know what the name servers do not.
    return bySystem(host)
  }
}

const isSilent = (cause: unknown): boolean =>
  cause instanceof Error &&
  "code" in cause &&
  (cause.code === "ETIMEOUT" || cause.code === "ECANCELLED")

const makeSystemResolve = (): Resolve => {
  let free = systemLookupsMax
  const waiting: Array<() => void> = []
  const take = () =>
    new Promise<void>((resolve) => {
      if (free === 0) return waiting.push(resolve)
      free -= 1
      return resolve()
    })
  const give = () => {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }
  return async (host) => {
    await take()
    try {
      const found = await lookup(host, { all: true })
      return found.map((entry) => entry.address)
    } finally {
      give()
    }
  }
}
