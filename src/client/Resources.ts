import type { FilterOf, Requests, WriteOptions } from "./Requests.ts"
import type { Operations } from "./schema.ts"
import type { RequestOptions } from "./Transport.ts"

export type BodyOf<R extends keyof Operations> = Operations[R] extends {
  readonly body?: infer Body
}
  ? NonNullable<Body>
  : never

// A user's resources in the management API; the key needs scope `manage`.

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
  /** The response contains the key's text as `key`, only this once. */
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
  /** Replaces the key's text. The old one works for another `grace_seconds`; without them it ends at once. */
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
  /** The response contains `secret` in full, only this once. */
  create: (body: BodyOf<"POST /manage/v1/webhook-endpoints">, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints", { ...options, body }),
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-endpoints">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-endpoints", filter, options),
  /** Its deliveries of the last 24 hours, by hour and outcome. */
  activity: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-endpoints/{id}/activity", { ...options, path: { id } }),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/webhook-endpoints/{id}">,
    options: RequestOptions = {}
  ) => api.request("PATCH /manage/v1/webhook-endpoints/{id}", { ...options, path: { id }, body }),
  delete: (id: string, options: RequestOptions = {}) =>
    api.request("DELETE /manage/v1/webhook-endpoints/{id}", { ...options, path: { id } }),
  /** Replaces `secret`; for 24 hours deliveries are also signed with the old one. */
  rotate: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/rotate", { ...options, path: { id } }),
  /** Sends a synthetic `task.succeeded`. */
  test: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-endpoints/{id}/test", { ...options, path: { id } }),
  /** Resends all deliveries that failed or were skipped since a time, 1,000 per call. */
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

/** The secret of task webhooks. docs/reference/webhooks.md#webhook-of-a-task */
export const webhookSecretOf = (api: Requests) => ({
  get: (options: RequestOptions = {}) => api.request("GET /manage/v1/webhook-secret", options),
  /** Replaces `secret` and returns it in full, only this once; for 24 hours the old one also signs. */
  rotate: (options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-secret/rotate", options)
})

/** docs/reference/webhooks.md#delivery-log */
export const webhookDeliveriesOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/webhook-deliveries/{id}", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/webhook-deliveries">, options?: RequestOptions) =>
    api.list("GET /manage/v1/webhook-deliveries", filter, options),
  /** Makes six new attempts under the same id. docs/reference/webhooks.md#redelivery */
  redeliver: (id: string, options: WriteOptions = {}) =>
    api.request("POST /manage/v1/webhook-deliveries/{id}/redeliver", {
      ...options,
      path: { id }
    }),
  /** Redelivers all that match, 1,000 per call. */
  redeliverAll: (
    body: BodyOf<"POST /manage/v1/webhook-deliveries/redeliver">,
    options: WriteOptions = {}
  ) => api.request("POST /manage/v1/webhook-deliveries/redeliver", { ...options, body })
})

/** Receipts of metered calls. docs/reference/wallet.md#receipts-of-calls */
export const callsOf = (api: Requests) => ({
  get: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/calls/{id}", { ...options, path: { id } }),
  /** What a call sent and received, if its user keeps that. docs/reference/passthrough.md#requests-and-responses */
  content: (id: string, options: RequestOptions = {}) =>
    api.request("GET /manage/v1/calls/{id}/content", { ...options, path: { id } }),
  list: (filter?: FilterOf<"GET /manage/v1/calls">, options?: RequestOptions) =>
    api.list("GET /manage/v1/calls", filter, options)
})

/** Sums by day, key and model. docs/reference/usage.md#api */
export const usageOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/usage">, options?: RequestOptions) =>
    api.list("GET /manage/v1/usage", filter, options)
})

/** Models with their prices and request schemas. docs/catalog.md#price-rows */
export const modelsOf = (api: Requests) => ({
  list: (filter?: FilterOf<"GET /manage/v1/models">, options?: RequestOptions) =>
    api.list("GET /manage/v1/models", filter, options)
})
