import { lookup, Resolver } from "node:dns/promises"
import type { Resolve } from "./EgressConnector.ts"

/**
 * A look-up by the operating system blocks one of libuv's four threads until it returns, up to half a
 * minute with a silent name server: four such names would stop all other look-ups and file access.
 * So names are resolved by c-ares, which needs no thread. ADR 0056.
 */
const queryMillis = 3000
const queryTries = 3

/** How long the response for one address family waits for that of the other. */
const otherFamilyMillis = 250

/** Look-ups by the operating system at a time: half of libuv's threads. */
const systemLookupsMax = 2

/** Resolves names so that a silent name server delays no other name. */
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
    // A single label is in the hosts file or in a search domain, which only the system knows.
    if (!host.includes(".")) return bySystem(host)
    const { failures, found } = await firstOf([resolver.resolve4(host), resolver.resolve6(host)])
    if (found.length > 0) return found
    const timeout = failures.find(isTimeout)
    if (timeout !== undefined) throw timeout
    // The hosts file may have a name that the name servers do not have.
    return bySystem(host)
  }
}

/**
 * The addresses of both families, or of the first one when the other does not respond within
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
