import { Effect } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
import { Router } from "../../tasks/Router.ts"

/** Vendors by name: with a key for any of their models or routes, and served by the simulator alone. */
export const liveVendors = Effect.gen(function* () {
  const { models } = yield* Router
  const { upstream } = (yield* Catalog).current()
  const calls = yield* UpstreamCalls
  const parts = [
    ...models().map(({ entry, sandbox }) => ({ vendor: entry.vendor, sandbox })),
    ...upstream.routes.map(({ provider, vendor }) => ({
      vendor,
      sandbox: calls.isSandbox(provider)
    }))
  ]
  const live = new Set(parts.filter(({ sandbox }) => !sandbox).map(({ vendor }) => vendor))
  const simulated = new Set(parts.map(({ vendor }) => vendor).filter((it) => !live.has(it)))
  return { live, simulated }
})
