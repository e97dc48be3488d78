import { Effect } from "effect"
import { Catalog } from "../../catalog/Catalog.ts"
import { UpstreamCalls } from "../../passthrough/UpstreamCalls.ts"
import { Router } from "../../tasks/Router.ts"

/**
 * Does the response to a path say that the simulator stands behind it? Every one does while no
 * vendor has a key, else those of the vendors without. Contract 7; ADR 0110.
 */
export const makeIsSandbox = Effect.gen(function* () {
  const { models } = yield* Router
  const { upstream } = yield* Catalog
  const calls = yield* UpstreamCalls
  const parts = [
    ...models.map(({ entry, sandbox }) => ({ vendor: entry.vendor, sandbox })),
    ...upstream.routes.map(({ provider, vendor }) => ({
      vendor,
      sandbox: calls.isSandbox(provider)
    }))
  ]
  const live = new Set(parts.filter(({ sandbox }) => !sandbox).map(({ vendor }) => vendor))
  const simulated = new Set(parts.map(({ vendor }) => vendor).filter((it) => !live.has(it)))
  return (path: string): boolean => live.size === 0 || simulated.has(vendorOf(path))
})

const vendorOf = (path: string): string =>
  path.startsWith("/v1/") ? "openai" : (/^\/vendors\/([^/?]+)/u.exec(path)?.[1] ?? "")
