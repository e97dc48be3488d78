import { lookup, Resolver } from "node:dns/promises"
import type { Resolve } from "./EgressConnector.ts"

/**
 * The operating system's look-up holds one of libuv's four threads until it answers, and a silent
 * name server may take half a minute: four such names would stop every other look-up, and file
 * access with it. So names go to the name servers by c-ares, which needs no thread. ADR 0056.
 */
const queryMillis = 3000
const queryTries = 3

/** How long the answer for one family waits for that of the other. */
const otherFamilyMillis = 250

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
    const { failures, found } = await firstOf([resolver.resolve4(host), resolver.resolve6(host)])
    if (found.length > 0) return found
    const silence = failures.find(isSilent)
    if (silence !== undefined) throw silence
    // The hosts file may know what the name servers do not.
    return bySystem(host)
  }
}

/**
 * The addresses of both families, or of the one that answered when the other keeps silent a little
 * longer: many name servers never answer for AAAA.
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
