import { Effect, Redacted } from "effect"
import type { AdapterName } from "../../../src/catalog/CatalogEntry.ts"
import type { AccountSetting } from "../../../src/domain/Provider.ts"
import type { Adapter } from "../../../src/vendors/Adapter.ts"
import type { AdapterContext } from "../../../src/vendors/AdapterContext.ts"
import { adapters } from "../../../src/vendors/Adapters.ts"
import * as Download from "../../../src/vendors/Download.ts"
import type {
  SubmitMedium,
  SubmitRequest,
  VendorAccount
} from "../../../src/vendors/VendorClient.ts"
import * as VendorHttp from "../../../src/vendors/VendorHttp.ts"
import { pixel } from "./Upstream.ts"

/** One family's account at an upstream, as `LiveVendors` creates it. */
export const accountAt = Effect.fnUntraced(function* (
  which: AdapterName | Adapter,
  baseUrl: string,
  key: string,
  more: Partial<AdapterContext> = {}
) {
  const adapter = typeof which === "string" ? adapters[which] : which
  const name = typeof which === "string" ? which : `jobs/${which.provider}`
  const account: AccountSetting = {
    id: `${adapter.provider}:test`,
    provider: adapter.provider,
    key: Redacted.make(key),
    baseUrl,
    weight: 1
  }
  const auth = adapter.auth(key)
  const http = yield* VendorHttp.make()
  const accountId = `${name}@${account.id}`
  const observeResponse = () => Effect.void
  const context = {
    account,
    accountId,
    auth,
    http,
    toNamed: http,
    observeResponse,
    mayDisableInspection: false,
    ...more
  }
  return { ...adapter.make(context), download: (yield* Download.make)(account, auth) }
})

/** An image that the client sent inline, or by URL with `sourceUrl`. */
export const picture = (pointer: string, sourceUrl?: string): SubmitMedium => ({
  pointer,
  mime: "image/png",
  size: pixel.length,
  artifactUrl: `http://gateway.test/artifacts/art_1?signature=s`,
  bytes: Effect.succeed(new Uint8Array(pixel)),
  ...(sourceUrl === undefined ? {} : { sourceUrl })
})

export const request = (
  model: string,
  upstreamModel: string,
  body: object,
  more: Partial<SubmitRequest> = {}
): SubmitRequest => ({
  taskId: "0190a1b2-0000-7000-8000-000000000001",
  model,
  upstreamModel,
  body,
  result: "images",
  media: [],
  ...more
})

/** The listed jobs that may belong to a request whose submit began at this time. */
export const jobsLike = Effect.fnUntraced(function* (
  { list }: Pick<VendorAccount, "list">,
  request: SubmitRequest,
  startedAtMillis: number
) {
  if (list === undefined) return []
  const times = { from: startedAtMillis - 10_000, until: startedAtMillis + 70_000 }
  const jobs = yield* list({ requests: [request], ...times })
  return jobs.filter((it) => it.compare(request) !== "other")
})
