import type { FilterOf, Requests, WriteOptions } from "./Requests.ts"
import type { Operations } from "./schema.ts"
import type { RequestOptions } from "./Transport.ts"

export type BodyOf<R extends keyof Operations> = Operations[R] extends {
  readonly body?: infer Body
}
  ? NonNullable<Body>
  : never

// A user's resources in the management API; the key needs scope `manage`.

/** The user's wallet. docs/reference/wallet.md#balances */
export const walletOf = (api: Requests) => ({
  get: (options: RequestOptions = {}) => api.request("GET /manage/v1/wallet", options),
  /** Sets the threshold of the balance alert. */
  update: (body: BodyOf<"PATCH /manage/v1/wallet">, options: RequestOptions = {}) =>
    api.request("PATCH /manage/v1/wallet", { ...options, body }),
  /** The entries of the ledger. docs/reference/wallet.md#ledger */
  entries: (filter?: FilterOf<"GET /manage/v1/wallet/entries">, options?: RequestOptions) =>
    api.list("GET /manage/v1/wallet/entries", filter, options)
})

/** The user's API keys. docs/reference/keys-and-limits.md#api-keys */
export const apiKeysOf = (api: Requests) => ({
  /** Creates a key. Only this response contains its text, as `key`. */
  create: (body: BodyOf<"POST /manage/v1/api-keys">, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/api-keys", { ...options, body }),
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/api-keys/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/api-keys">, options?: RequestOptions) =>
    api.list("GET /manage/v1/api-keys", filter, options),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/api-keys/{id}">,
    options: RequestOptions = {}
  ) => api.request("PATCH /manage/v1/api-keys/{id}", { ...options, path: { id }, body }),
  /** Replaces the key's text. The old one stays valid for `grace_seconds`; by default it ends immediately. */
  rotate: (
    id: string,
    body: BodyOf<"POST /manage/v1/api-keys/{id}/rotate"> = {},
    options: WriteOptions = {}
  ) => api.request("POST /manage/v1/api-keys/{id}/rotate", { ...options, path: { id }, body }),
  revoke: (id: string, options: RequestOptions = {}) =>
    api.request("DELETE /manage/v1/api-keys/{id}", { ...options, path: { id } })
})

/** The user's webhook endpoints. docs/reference/webhooks.md#endpoints */
export const webhookEndpointsOf = (api: Requests) => ({
  /** Creates an endpoint. Only this response contains the full `secret`. */
  create: (body: BodyOf<"POST /manage/v1/webhook-endpoints">, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints", { ...options, body }),
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-endpoints">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-endpoints", filter, options),
  /** The endpoint's deliveries of the last 24 hours, counted by hour and outcome. */
  activity: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-endpoints/{id}/activity", { ...options, path: { id } }),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/webhook-endpoints/{id}">,
    options: RequestOptions = {}
  ) => api.request("PATCH /manage/v1/webhook-endpoints/{id}", { ...options, path: { id }, body }),
  delete: (id: string, options: RequestOptions = {}) =>
    api.request("DELETE /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  /** Replaces `secret`. For 24 hours, deliveries are also signed with the old one. */
  rotate: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/rotate", { ...options, path: { id } }),
  /** Sends a synthetic `task.succeeded`. */
  test: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/test", { ...options, path: { id } }),
  /** Resends all deliveries that failed or were skipped since a given time, 1,000 per call. */
  recover: (
    id: string,
    body: BodyOf<"POST /manage/v1/webhook-endpoints/{id}/recover">,
    options: WriteOptions = {}
  ) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/recover", {
      ...options,
      path: { id },
      body
    })
})

/** The secret that signs the webhooks of tasks. docs/reference/webhooks.md#webhook-of-a-task */
export const webhookSecretOf = (api: Requests) => ({
  get: (options: RequestOptions = {}) => api.request("GET /manage/v1/webhook-secret", options),
  /** Replaces `secret`. Only this response contains it in full. For 24 hours, the old one also signs. */
  rotate: (options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-secret/rotate", options)
})

/** The delivery log. docs/reference/webhooks.md#delivery-log */
export const webhookDeliveriesOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-deliveries/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-deliveries">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-deliveries", filter, options),
  /** Resends a delivery under the same id, with up to six new attempts. docs/reference/webhooks.md#redelivery */
  redeliver: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-deliveries/{id}/redeliver", {
      ...options,
      path: { id }
    }),
  /** Resends all matching deliveries, 1,000 per call. */
  redeliverAll: (
    body: BodyOf<"POST /manage/v1/webhook-deliveries/redeliver">,
    options: WriteOptions = {}
  ) => api.request("POST /manage/v1/webhook-deliveries/redeliver", { ...options, body })
})

/** Receipts of metered calls. docs/reference/wallet.md#receipts-of-calls */
export const callsOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/calls/{id}", { ...options, path: { id } }),
  /**
   * The request and response of a call, if its user keeps them. docs/reference/passthrough.md#requests-and-responses
   */
  content: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/calls/{id}/content", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/calls">, options?: RequestOptions) =>
    api.list("GET /manage/v1/calls", filter, options)
})

/** Charges by day, key and model. docs/reference/usage.md#api */
export const usageOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/usage">, options?: RequestOptions) =>
    api.list("GET /manage/v1/usage", filter, options)
})

/** Models with their prices and request schemas. docs/catalog.md#price-rows */
export const modelsOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/models">, options?: RequestOptions) =>
    api.list("GET /manage/v1/models", filter, options)
})
