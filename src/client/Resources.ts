import type { FilterOf, Requests, WriteOptions } from "./Requests.ts"
import type { Operations } from "./schema.ts"
import type { RequestOptions } from "./Transport.ts"

export type BodyOf<R extends keyof Operations> = Operations[R] extends {
  readonly body?: infer Body
}
  ? NonNullable<Body>
  : never

// The resources of the management API that a user has; the key needs scope `manage`.

/** docs/reference/wallet.md#balances */
export const walletOf = (api: Requests) => ({
  get: (options: RequestOptions = {}) => api.request("GET /manage/v1/wallet", options),
  /** Sets the threshold of the balance alert. */
  update: (body: BodyOf<"PATCH /manage/v1/wallet">, options: RequestOptions = {}) =>
    api.request("PATCH /manage/v1/wallet", { ...options, body }),
  /** The ledger. docs/reference/wallet.md#ledger */
  entries: (filter?: FilterOf<"GET /manage/v1/wallet/entries">, options?: RequestOptions) =>
    api.list("GET /manage/v1/wallet/entries", filter, options)
})

/** docs/reference/keys-and-limits.md#api-keys */
export const apiKeysOf = (api: Requests) => ({
  /** The key's text is `key` of the answer, shown this once. */
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
  /** A new text for the key; the old one works for `grace_seconds` more, and ends at once without them. */
  rotate: (
    id: string,
    body: BodyOf<"POST /manage/v1/api-keys/{id}/rotate"> = {},
    options: WriteOptions = {}
  ) => api.request("POST /manage/v1/api-keys/{id}/rotate", { ...options, path: { id }, body }),
  revoke: (id: string, options: RequestOptions = {}) =>
    api.request("DELETE /manage/v1/api-keys/{id}", { ...options, path: { id } })
})

/** docs/reference/webhooks.md#endpoints */
export const webhookEndpointsOf = (api: Requests) => ({
  /** The answer has `secret`, shown in full this once. */
  create: (body: BodyOf<"POST /manage/v1/webhook-endpoints">, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints", { ...options, body }),
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-endpoints">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-endpoints", filter, options),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/webhook-endpoints/{id}">,
    options: RequestOptions = {}
  ) => api.request("PATCH /manage/v1/webhook-endpoints/{id}", { ...options, path: { id }, body }),
  delete: (id: string, options: RequestOptions = {}) =>
    api.request("DELETE /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  /** A new `secret`; for 24 hours deliveries are signed with the old one too. */
  rotate: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/rotate", { ...options, path: { id } }),
  /** Sends a synthetic `task.succeeded`. */
  test: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/test", { ...options, path: { id } }),
  /** Sends all again that failed or were skipped since a time, 1,000 a call. */
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

/** Of the webhooks of tasks. docs/reference/webhooks.md#webhook-of-a-task */
export const webhookSecretOf = (api: Requests) => ({
  get: (options: RequestOptions = {}) => api.request("GET /manage/v1/webhook-secret", options),
  /** A new `secret`, shown in full this once; for 24 hours the old one signs too. */
  rotate: (options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-secret/rotate", options)
})

/** docs/reference/webhooks.md#delivery-log */
export const webhookDeliveriesOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-deliveries/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-deliveries">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-deliveries", filter, options),
  /** Six new attempts under the same id. docs/reference/webhooks.md#redelivery */
  redeliver: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-deliveries/{id}/redeliver", {
      ...options,
      path: { id }
    }),
  /** All that match, 1,000 a call. */
  redeliverAll: (
    body: BodyOf<"POST /manage/v1/webhook-deliveries/redeliver">,
    options: WriteOptions = {}
  ) => api.request("POST /manage/v1/webhook-deliveries/redeliver", { ...options, body })
})

/** Receipts of metered calls. docs/reference/wallet.md#receipts-of-calls */
export const callsOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/calls/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/calls">, options?: RequestOptions) =>
    api.list("GET /manage/v1/calls", filter, options)
})

/** Sums by day, key and model. docs/reference/usage.md#api */
export const usageOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/usage">, options?: RequestOptions) =>
    api.list("GET /manage/v1/usage", filter, options)
})

/** Models with prices and bodies. docs/catalog.md#price-rows */
export const modelsOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/models">, options?: RequestOptions) =>
    api.list("GET /manage/v1/models", filter, options)
})
