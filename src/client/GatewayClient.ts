import { systemClock } from "./Clock.ts"
import type { ClientClock } from "./Clock.ts"
import { eventsOf } from "./Events.ts"
import { Requests } from "./Requests.ts"
import type {
  AnswerOf,
  AnyRoute,
  ArgumentsOf,
  FilterOf,
  ItemOf,
  List,
  ListRoute
} from "./Requests.ts"
import * as Resources from "./Resources.ts"
import { Tasks } from "./Tasks.ts"
import { Transport } from "./Transport.ts"
import type { RequestOptions } from "./Transport.ts"

export interface ClientOptions extends RequestOptions {
  /** The address of the gateway, such as `https://gateway.example.com`, with its path if it has one. */
  readonly baseUrl: string
  /** An API key, or the operator's token. It is sent only to `baseUrl` and appears in no error or log. */
  readonly apiKey: string
  /** Replaces the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** `SERVICE_NAME` of the gateway; default `Service`. docs/reference/http.md#every-response */
  readonly serviceName?: string | undefined
  /** For tests. */
  readonly clock?: ClientClock | undefined
  /** Returns a number from 0 to 1, for the jitter of retries. */
  readonly random?: (() => number) | undefined
}

/** Characters that are allowed in a header. `fetch` would quote any other text in its error. */
const headerText = /^[\x21-\x7e]+$/u

/**
 * A client of a gateway with one key. Has no dependencies; runs on Node 22 and later, Deno, Bun, in browsers and
 * workers.
 *
 *     const client = new GatewayClient({ baseUrl, apiKey })
 *     const task = await client.tasks.run("text-to-image-max", { prompt: "A lighthouse at dawn" })
 *     console.log(task.images[0])
 *
 * docs/client.md
 */
export class GatewayClient {
  readonly tasks: Tasks
  readonly events: ReturnType<typeof eventsOf>
  readonly wallet: ReturnType<typeof Resources.walletOf>
  readonly apiKeys: ReturnType<typeof Resources.apiKeysOf>
  readonly webhookEndpoints: ReturnType<typeof Resources.webhookEndpointsOf>
  readonly webhookSecret: ReturnType<typeof Resources.webhookSecretOf>
  readonly webhookDeliveries: ReturnType<typeof Resources.webhookDeliveriesOf>
  readonly calls: ReturnType<typeof Resources.callsOf>
  readonly usage: ReturnType<typeof Resources.usageOf>
  readonly models: ReturnType<typeof Resources.modelsOf>
  readonly #options: ClientOptions
  readonly #requests: Requests

  constructor(options: ClientOptions) {
    const { apiKey, baseUrl, clock = systemClock, random = Math.random } = options
    if (!headerText.test(apiKey)) {
      throw new TypeError("apiKey is empty or has a character that is not allowed in a header")
    }
    const { hash, origin, pathname, protocol, search, username } = new URL(baseUrl)
    if (!/^https?:$/u.test(protocol) || `${search}${hash}${username}` !== "") {
      throw new TypeError("baseUrl must be an http or https URL without user, query and fragment")
    }
    this.#options = options
    this.#requests = new Requests(
      new Transport({
        apiKey,
        baseUrl: `${origin}${pathname.replace(/\/+$/u, "")}`,
        fetch: options.fetch ?? ((url, init) => fetch(url, init)),
        clock,
        random,
        defaults: {
          signal: options.signal,
          timeout: options.timeout,
          maxRetries: options.maxRetries
        }
      })
    )
    this.tasks = new Tasks(this.#requests, options.serviceName ?? "Service")
    this.events = eventsOf(this.#requests)
    this.wallet = Resources.walletOf(this.#requests)
    this.apiKeys = Resources.apiKeysOf(this.#requests)
    this.webhookEndpoints = Resources.webhookEndpointsOf(this.#requests)
    this.webhookSecret = Resources.webhookSecretOf(this.#requests)
    this.webhookDeliveries = Resources.webhookDeliveriesOf(this.#requests)
    this.calls = Resources.callsOf(this.#requests)
    this.usage = Resources.usageOf(this.#requests)
    this.models = Resources.modelsOf(this.#requests)
  }

  /** The same client with different settings for its requests: `client.with({ signal })`. */
  with(options: RequestOptions): GatewayClient {
    return new GatewayClient({ ...this.#options, ...options })
  }

  /**
   * Calls any route: `client.request("GET /manage/v1/users/{id}", { path: { id } })`. Routes of the management API are
   * typed; others take and return JSON. A POST to a route without idempotency keys is sent only once.
   */
  request<R extends AnyRoute>(route: R, ...options: ArgumentsOf<R>): Promise<AnswerOf<R>> {
    return this.#requests.request(route, ...options)
  }

  /** Lists any list of the management API: `client.list("GET /manage/v1/audit-log")`. */
  list<R extends ListRoute>(
    route: R,
    filter?: FilterOf<R>,
    options?: RequestOptions & { readonly path?: Readonly<Record<string, string>> }
  ): List<ItemOf<R>> {
    return this.#requests.list(route, filter, options)
  }
}
