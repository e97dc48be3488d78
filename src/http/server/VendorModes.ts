import { Effect } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
import { Router } from "../../tasks/creation/Router.ts"

/** Vendors by name. */
export interface VendorModes {
  /** With a key for any of their models or routes. */
  readonly live: ReadonlySet<string>
  /** Served by the simulator alone. */
  readonly simulated: ReadonlySet<string>
}

/** The vendors of the catalog that is sold now. */
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
  // Every response asks: read once for each catalog
  let known = { version: catalog.current(), modes: read() }
  return (): VendorModes => {
    const version = catalog.current()
    if (version !== known.version) known = { version, modes: read() }
    return known.modes
  }
})
