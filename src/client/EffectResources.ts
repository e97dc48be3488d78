import type { StreamOf, Use } from "./effect.ts"
import type { FilterOf, WriteOptions } from "./Requests.ts"
import type { BodyOf } from "./Resources.ts"
import type { RequestOptions } from "./Transport.ts"

type Options<Given> = Omit<Given, "signal">

// `Resources.ts` as Effects and Streams.

/** docs/reference/wallet.md#balances */
export const walletOf = (use: Use, streamOf: StreamOf) => ({
  get: (options?: Options<RequestOptions>) => use(({ wallet }) => wallet.get(options)),
  update: (body: BodyOf<"PATCH /manage/v1/wallet">, options?: Options<RequestOptions>) =>
    use(({ wallet }) => wallet.update(body, options)),
  entries: (
    filter?: FilterOf<"GET /manage/v1/wallet/entries">,
    options?: Options<RequestOptions>
  ) => streamOf(({ wallet }) => wallet.entries(filter, options))
})

/** docs/reference/keys-and-limits.md#api-keys */
export const apiKeysOf = (use: Use, streamOf: StreamOf) => ({
  create: (body: BodyOf<"POST /manage/v1/api-keys">, options?: Options<WriteOptions>) =>
    use(({ apiKeys }) => apiKeys.create(body, options)),
  get: (id: string, options?: Options<RequestOptions>) =>
    use(({ apiKeys }) => apiKeys.get(id, options)),
  list: (filter?: FilterOf<"GET /manage/v1/api-keys">, options?: Options<RequestOptions>) =>
    streamOf(({ apiKeys }) => apiKeys.list(filter, options)),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/api-keys/{id}">,
    options?: Options<RequestOptions>
  ) => use(({ apiKeys }) => apiKeys.update(id, body, options)),
  rotate: (
    id: string,
    body?: BodyOf<"POST /manage/v1/api-keys/{id}/rotate">,
    options?: Options<WriteOptions>
  ) => use(({ apiKeys }) => apiKeys.rotate(id, body, options)),
  revoke: (id: string, options?: Options<RequestOptions>) =>
    use(({ apiKeys }) => apiKeys.revoke(id, options))
})

/** docs/reference/webhooks.md#endpoints */
export const webhookEndpointsOf = (use: Use, streamOf: StreamOf) => ({
  create: (body: BodyOf<"POST /manage/v1/webhook-endpoints">, options?: Options<WriteOptions>) =>
    use(({ webhookEndpoints }) => webhookEndpoints.create(body, options)),
  get: (id: string, options?: Options<RequestOptions>) =>
    use(({ webhookEndpoints }) => webhookEndpoints.get(id, options)),
  list: (
    filter?: FilterOf<"GET /manage/v1/webhook-endpoints">,
    options?: Options<RequestOptions>
  ) => streamOf(({ webhookEndpoints }) => webhookEndpoints.list(filter, options)),
  update: (
    id: string,
    body: BodyOf<"PATCH /manage/v1/webhook-endpoints/{id}">,
    options?: Options<RequestOptions>
  ) => use(({ webhookEndpoints }) => webhookEndpoints.update(id, body, options)),
  delete: (id: string, options?: Options<RequestOptions>) =>
    use(({ webhookEndpoints }) => webhookEndpoints.delete(id, options)),
  rotate: (id: string, options?: Options<WriteOptions>) =>
    use(({ webhookEndpoints }) => webhookEndpoints.rotate(id, options)),
  test: (id: string, options?: Options<WriteOptions>) =>
    use(({ webhookEndpoints }) => webhookEndpoints.test(id, options)),
  recover: (
    id: string,
    body: BodyOf<"POST /manage/v1/webhook-endpoints/{id}/recover">,
    options?: Options<WriteOptions>
  ) => use(({ webhookEndpoints }) => webhookEndpoints.recover(id, body, options))
})

/** docs/reference/webhooks.md#delivery-log */
export const webhookDeliveriesOf = (use: Use, streamOf: StreamOf) => ({
  get: (id: string, options?: Options<RequestOptions>) =>
    use(({ webhookDeliveries }) => webhookDeliveries.get(id, options)),
  list: (
    filter?: FilterOf<"GET /manage/v1/webhook-deliveries">,
    options?: Options<RequestOptions>
  ) => streamOf(({ webhookDeliveries }) => webhookDeliveries.list(filter, options)),
  redeliver: (id: string, options?: Options<WriteOptions>) =>
    use(({ webhookDeliveries }) => webhookDeliveries.redeliver(id, options)),
  redeliverAll: (
    body: BodyOf<"POST /manage/v1/webhook-deliveries/redeliver">,
    options?: Options<WriteOptions>
  ) => use(({ webhookDeliveries }) => webhookDeliveries.redeliverAll(body, options))
})

/** Receipts of metered calls. docs/reference/wallet.md#receipts-of-calls */
export const callsOf = (use: Use, streamOf: StreamOf) => ({
  get: (id: string, options?: Options<RequestOptions>) =>
    use(({ calls }) => calls.get(id, options)),
  list: (filter?: FilterOf<"GET /manage/v1/calls">, options?: Options<RequestOptions>) =>
    streamOf(({ calls }) => calls.list(filter, options))
})

/** Sums by day, key and model. docs/reference/usage.md#api */
export const usageOf = (_: Use, streamOf: StreamOf) => ({
  list: (filter?: FilterOf<"GET /manage/v1/usage">, options?: Options<RequestOptions>) =>
    streamOf(({ usage }) => usage.list(filter, options))
})

/** Models with prices and bodies. docs/catalog.md#price-rows */
export const modelsOf = (_: Use, streamOf: StreamOf) => ({
  list: (filter?: FilterOf<"GET /manage/v1/models">, options?: Options<RequestOptions>) =>
    streamOf(({ models }) => models.list(filter, options))
})
