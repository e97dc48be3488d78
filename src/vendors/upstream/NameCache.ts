import { lookup } from "node:dns"
import type { LookupAddress } from "node:dns"
import type { LookupFunction } from "node:net"
import { promisify } from "node:util"

/** A lookup by the operating system: the hosts file, search domains, name servers. */
export type SystemLookup = (host: string) => Promise<ReadonlyArray<LookupAddress>>

/** Shorter than the TTL of vendors' DNS records, so that a host that changes its address is soon found again. */
const keptMillis = 10_000

/** The most cached names: far more than the vendors of one operator. */
const namesMax = 100

interface Found {
  readonly addresses: Promise<ReadonlyArray<LookupAddress>>
  /** Expiry in milliseconds; infinite during the lookup, which callers share. */
  until: number
}

/**
 * Caches the operating system's lookups for ten seconds. Only for hosts that the operator configured: connections to
 * other hosts go through the egress guard, which resolves and checks each one.
 */
export class NameCache {
  readonly #found = new Map<string, Found>()
  readonly #lookup: SystemLookup
  readonly #now: () => number

  constructor(options: { readonly lookup?: SystemLookup; readonly now?: () => number } = {}) {
    this.#lookup = options.lookup ?? ((host) => promisify(lookup)(host, { all: true }))
    this.#now = options.now ?? (() => performance.now())
  }

  /** The `lookup` hook of `net.connect`. */
  readonly lookup: LookupFunction = (host, { all, family }, callback) => {
    void this.#resolve(host).then(
      (addresses) => {
        const wanted =
          family === 4 || family === "IPv4" ? 4 : family === 6 || family === "IPv6" ? 6 : 0
        const found = addresses.filter((it) => wanted === 0 || it.family === wanted)
        const [first] = found
        if (first === undefined) callback(noAddress(host), [])
        else if (all === true) callback(null, found)
        else callback(null, first.address, first.family)
      },
      (cause: unknown) => callback(cause instanceof Error ? cause : noAddress(host), [])
    )
  }

  /** Looks up the name again on the next call, because no address accepted a connection. */
  forget(host: string): void {
    this.#found.delete(host)
  }

  #resolve(host: string): Promise<ReadonlyArray<LookupAddress>> {
    const known = this.#found.get(host)
    if (known !== undefined && this.#now() < known.until) return known.addresses
    if (this.#found.size >= namesMax) this.#found.clear()
    const addresses = this.#lookup(host)
    const found: Found = { addresses, until: Number.POSITIVE_INFINITY }
    this.#found.set(host, found)
    addresses.then(
      () => (found.until = this.#now() + keptMillis),
      () => this.forget(host)
    )
    return addresses
  }
}

const noAddress = (host: string): Error =>
  Object.assign(new Error(`${host} has no address`), { code: "ENOTFOUND" })
