import { systemClock } from "../client/Clock.ts"
import { ConnectionError, errorOf, GatewayError } from "../client/Errors.ts"
import { GatewayClient } from "../client/GatewayClient.ts"
import { isRetried } from "../client/Retry.ts"
import type { TaskRef } from "../client/Task.ts"
import { reasonOf, Transport } from "../client/Transport.ts"

export interface Settings {
  /**
   * The address of the gateway, such as `https://gateway.example.com`. Default: `GATEWAY_URL`, or else
   * `http://localhost:8080`.
   */
  readonly baseURL?: string | undefined
  /** An API key with the scope `inference`. Default: `GATEWAY_API_KEY`. */
  readonly apiKey?: string | undefined
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** `SERVICE_NAME` of the gateway; default `Service`. docs/reference/http.md#every-response */
  readonly serviceName?: string | undefined
}

/** How the models reach the gateway. */
export interface Connection {
  readonly baseURL: string
  readonly apiKey: string
  readonly fetch: typeof globalThis.fetch
  readonly transport: Transport
  readonly client: GatewayClient
  readonly serviceName: string
}

const variable = (name: string): string | undefined => globalThis.process?.env?.[name]

const address = (given: string): string => given.replace(/\/+$/u, "")

/** Throws a `TypeError` if there is no key. */
export const connect = (settings: Settings): Connection => {
  const baseURL = address(settings.baseURL ?? variable("GATEWAY_URL") ?? "http://localhost:8080")
  const apiKey = settings.apiKey ?? variable("GATEWAY_API_KEY")
  if (apiKey === undefined) throw new TypeError("Give apiKey, or set GATEWAY_API_KEY")
  const { serviceName = "Service" } = settings
  const fetch = settings.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const own = (url: string, init: RequestInit) => fetch(url, init)
  const client = new GatewayClient({ baseUrl: baseURL, apiKey, fetch: own, serviceName })
  const transport = new Transport({
    baseUrl: baseURL,
    apiKey,
    fetch: own,
    clock: systemClock,
    random: Math.random,
    defaults: {}
  })
  return { baseURL, apiKey, fetch, transport, client, serviceName }
}

/** Matches `/vendors/{vendor}/v1/{model}/{action}/{id}`, the path of a task. */
const taskPath = /\/vendors\/([^/]+)\/v1\/([^/]+)\/(generation|edit)\/([^/?]+)$/u

/** The task in the URL that a create returned in a header. */
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

/** The headers of an AI SDK call, without undefined ones. */
export const sent = (
  headers: Readonly<Record<string, string | undefined>> | undefined
): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const]
    )
  )

/** The response metadata that the AI SDK exposes. */
export const responseOf = (modelId: string, headers?: Headers) => ({
  timestamp: new Date(systemClock.now()),
  modelId,
  headers: headers === undefined ? undefined : Object.fromEntries(headers)
})

/** Rejects with the client's errors, or with the reason of the signal. */
export const withClientErrors = async <A>(
  signal: AbortSignal | undefined,
  work: () => Promise<A>
): Promise<A> => {
  try {
    return await work()
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof GatewayError) throw cause
    const lost = { status: 0, title: "The response was lost", detail: reasonOf(cause) }
    throw new ConnectionError(lost, cause)
  }
}

/**
 * Downloads a result by its signed link, at the gateway or the vendor. A lost download is repeated, because the result
 * has been paid for.
 */
export const download = async (
  connection: Connection,
  url: string,
  signal: AbortSignal | undefined,
  retry = 0
): Promise<Uint8Array> => {
  const { fetch, transport } = connection
  try {
    return await withClientErrors(signal, async () => {
      const response = await fetch(url, signal === undefined ? {} : { signal })
      if (response.ok) return new Uint8Array(await response.arrayBuffer())
      const request = { now: transport.clock.now(), idempotencyKey: undefined }
      throw errorOf(response, await response.text(), request)
    })
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { retryAfter, status } = error
    const failed = { isRepeatable: true, isFinal: false, isUnderWay: false, retryAfter, status }
    if (retry >= transport.settings({}).maxRetries || !isRetried(failed)) throw error
    await transport.backOff(retry, retryAfter, signal)
  }
  return download(connection, url, signal, retry + 1)
}
