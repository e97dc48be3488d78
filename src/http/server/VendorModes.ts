import { Effect } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
import { Router } from "../../tasks/creation/Router.ts"

/** The names of live and simulated vendors. */
export interface VendorModes {
  /** Vendors with a key for any of their models or routes. */
  readonly live: ReadonlySet<string>
  /** Vendors served only by the simulator. */
  readonly simulated: ReadonlySet<string>
}

/** The vendors of the current catalog. */
export const makeVendorModes = Effect.gen(function* () {
  const { models } = yield* Router
  const catalog = yield* Catalog
  const calls = yield* UpstreamCalls
  const read = (): VendorModes => {
    const parts = [
      ...models().map(({ entry, sandbox }) => ({ vendor: entry.vendor, sandbox })),
      ...catalog.current().upstream.routes.map(({ provider, vendor }) => ({
        vendor,
        sandbox: calls.isSandbox(provider)
      }))
    ]
    const live = new Set(parts.filter(({ sandbox }) => !sandbox).map(({ vendor }) => vendor))
    const simulated = new Set(parts.map(({ vendor }) => vendor).filter((it) => !live.has(it)))
    return { live, simulated }
  }
  // Cached per catalog, because every response needs it
  let known = { version: catalog.current(), modes: read() }
  return (): VendorModes => {
    const version = catalog.current()
    if (version !== known.version) known = { version, modes: read() }
    return known.modes
  }
})
