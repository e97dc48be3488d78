import { systemClock } from "../client/Clock.ts"
import { GatewayClient } from "../client/GatewayClient.ts"
import type { TaskRef } from "../client/Task.ts"
import { Transport } from "../client/Transport.ts"

export interface Settings {
  /** The address of the gateway: `https://gateway.example.com`. Default: `GATEWAY_URL`, else `http://localhost:8080`. */
  readonly baseURL?: string | undefined
  /** An API key with the scope `inference`. Default: `GATEWAY_API_KEY`. */
  readonly apiKey?: string | undefined
  /** Used instead of the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** How the models reach the gateway. */
export interface Connection {
  readonly baseURL: string
  readonly apiKey: string
  readonly fetch: typeof globalThis.fetch
  readonly transport: Transport
  readonly client: GatewayClient
}

const variable = (name: string): string | undefined => globalThis.process?.env?.[name]

const address = (given: string): string => given.replace(/\/+$/u, "")

/** Fails with `TypeError` without a key. */
export const connect = (settings: Settings): Connection => {
  const baseURL = address(settings.baseURL ?? variable("GATEWAY_URL") ?? "http://localhost:8080")
  const apiKey = settings.apiKey ?? variable("GATEWAY_API_KEY")
  if (apiKey === undefined) throw new TypeError("Give apiKey, or set GATEWAY_API_KEY")
  const fetch = settings.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const own = (url: string, init: RequestInit) => fetch(url, init)
  const client = new GatewayClient({ baseUrl: baseURL, apiKey, fetch: own })
  const transport = new Transport({
    baseUrl: baseURL,
    apiKey,
    fetch: own,
    clock: systemClock,
    random: Math.random,
    defaults: {}
  })
  return { baseURL, apiKey, fetch, transport, client }
}

/** `/vendors/{vendor}/v1/{model}/{action}/{id}`, the address of a task. */
const taskPath = /\/vendors\/([^/]+)\/v1\/([^/]+)\/(generation|edit)\/([^/?]+)$/u

/** The task that a header of its create names. */
export const taskAt = (url: string | null): TaskRef | undefined => {
  const [, vendor, model, action, id] = taskPath.exec(url ?? "") ?? []
  if (vendor === undefined || model === undefined || id === undefined) return undefined
  return {
    id: decodeURIComponent(id),
    vendor: decodeURIComponent(vendor),
    model: decodeURIComponent(model),
    action: action === "edit" ? "edit" : "generation"
  }
}

/** Headers of a call of the AI SDK without those that are not set. */
export const sent = (
  headers: Readonly<Record<string, string | undefined>> | undefined
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const]
    )
  )

/** What the AI SDK shows of a response. */
export const responseOf = (modelId: string, headers?: Headers) => ({
  timestamp: new Date(systemClock.now()),
  modelId,
  headers: headers === undefined ? undefined : Object.fromEntries(headers)
})

/** The bytes of a result, by a signed link of the gateway or of the vendor. */
export const download = async (
  { fetch }: Connection,
  url: string,
  signal: AbortSignal | undefined
): Promise<Uint8Array> => {
  const response = await fetch(url, signal === undefined ? {} : { signal })
  if (!response.ok) throw new Error(`The result cannot be downloaded: HTTP ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}
