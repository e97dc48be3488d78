import { lookup, Resolver } from "node:dns/promises"
import type { Resolve } from "./EgressConnector.ts"

/**
 * Names are resolved by c-ares, which needs no thread. A lookup by the operating system blocks one of libuv's four
 * threads until it returns, up to half a minute if a name server is silent: four such names would stop all other
 * lookups and file access. ADR 0040.
 */
const queryMillis = 3000
const queryTries = 3

/** How long the answer for one address family waits for the other family's. */
const otherFamilyMillis = 250

/** Concurrent lookups by the operating system: half of libuv's threads. */
const systemLookupsMax = 2

/** Resolves names so that a silent name server does not delay other names. */
export const makeResolve = (
  options: {
    readonly servers?: ReadonlyArray<string>
    readonly timeoutMillis?: number
    /** The lookup by the operating system. */
    readonly lookup?: SystemLookup
  } = {}
): Resolve => {
  const resolver = new Resolver({
    timeout: options.timeoutMillis ?? queryMillis,
    tries: queryTries
  })
  if (options.servers !== undefined) resolver.setServers(options.servers)
  const bySystem = makeSystemResolve(
    options.lookup ?? ((host: string) => lookup(host, { all: true }))
  )

  return async (host, signal) => {
    // A single label is in the hosts file or in a search domain, which only the operating system knows
    if (!host.includes(".")) return bySystem(host, signal)
    const { failures, found } = await firstOf([resolver.resolve4(host), resolver.resolve6(host)])
    if (found.length > 0) return found
    const timeout = failures.find(isTimeout)
    if (timeout !== undefined) throw timeout
    // The hosts file may have a name that the name servers do not have
    return bySystem(host, signal)
  }
}

/**
 * The addresses of both families, or of the first one if the other does not respond within
 * `otherFamilyMillis`: many name servers never respond for AAAA.
 */
const firstOf = async (queries: ReadonlyArray<Promise<ReadonlyArray<string>>>) => {
  const found = queries.map((): ReadonlyArray<string> => [])
  const failures: Array<unknown> = []
  const noted = queries.map((query, n) =>
    query.then(
      (addresses) => {
        found[n] = addresses
      },
      (failure: unknown) => {
        failures.push(failure)
        throw failure
      }
    )
  )
  const all = Promise.allSettled(noted)
  const grace = Promise.any(noted).then(
    () => new Promise<void>((resolve) => setTimeout(resolve, otherFamilyMillis).unref()),
    () => undefined
  )
  await Promise.race([all, grace])
  return { found: found.flat(), failures }
}

const isTimeout = (cause: unknown): boolean =>
  cause instanceof Error &&
  "code" in cause &&
  (cause.code === "ETIMEOUT" || cause.code === "ECANCELLED")

type SystemLookup = (host: string) => Promise<ReadonlyArray<{ readonly address: string }>>

/** Lookups by the operating system. A lookup that is cancelled before its turn leaves the queue. */
const makeSystemResolve = (lookup: SystemLookup): Resolve => {
  let free = systemLookupsMax
  const waiting = new Set<() => void>()
  const take = (signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) return reject(new Error("The lookup was cancelled"))
      if (free > 0) {
        free -= 1
        return resolve()
      }
      waiting.add(resolve)
      return signal?.addEventListener("abort", () => {
        if (waiting.delete(resolve)) reject(new Error("The lookup was cancelled"))
      })
    })
  const give = () => {
    const [next] = waiting
    if (next === undefined) {
      free += 1
    } else {
      waiting.delete(next)
      next()
    }
  }
  return async (host, signal) => {
    await take(signal)
    try {
      const found = await lookup(host)
      return found.map((entry) => entry.address)
    } finally {
      give()
    }
  }
}
