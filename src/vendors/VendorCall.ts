import { Clock, Duration, Effect } from "effect"
import type { Schema } from "effect"
import type { Readable } from "node:stream"
import { retryAfterMillis } from "./accounts/RateLimits.ts"
import { noResponseError, readAs, responseError, unreadableError } from "./Faults.ts"
import type { FaultRule, Purpose, ReportedError } from "./Faults.ts"
import type { VendorError } from "./VendorError.ts"
import { isOk } from "./VendorHttp.ts"
import type { VendorHttp, VendorRequest, VendorResponse } from "./VendorHttp.ts"

/** `model` is the name under which the vendor counts a submit. It is absent for a query. */
export type ObserveResponse = (
  response: VendorResponse,
  model: string | undefined
) => Effect.Effect<void>

/** The common parts of all calls of one adapter to one account. */
export interface VendorApi {
  readonly http: VendorHttp
  /** Sent with every request: authentication and other fixed headers. */
  readonly headers: Readonly<Record<string, string>>
  readonly rules: ReadonlyArray<FaultRule>
  /** The error in a response that is not 2xx; `undefined` if the body is not the vendor's. */
  readonly reportedError: (response: VendorResponse) => ReportedError | undefined
  /** Receives every response, to act on rate limits and refused keys. */
  readonly observeResponse: ObserveResponse
}

export interface VendorCall<S> {
  readonly purpose: Purpose
  /** The upstream model of a submit, by which the vendor counts rates. */
  readonly model?: string
  readonly method?: VendorRequest["method"]
  readonly url: string
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent unchanged instead of `json`. */
  readonly raw?: { readonly contentType: string; readonly body: Uint8Array | Readable }
  readonly headers?: Readonly<Record<string, string>>
  readonly timeout?: Duration.Duration
  readonly bytesMax?: number
  readonly until?: RegExp
  readonly schema: S
}

const queryTimeout = Duration.seconds(30)

const bodyOf = ({ json, raw }: VendorCall<unknown>) =>
  raw === undefined
    ? { type: { "content-type": "application/json" }, body: JSON.stringify(json) }
    : { type: { "content-type": raw.contentType }, body: raw.body }

const requestOf = ({ headers }: VendorApi, call: VendorCall<unknown>): VendorRequest => {
  const { bytesMax, json, method = "GET", raw, timeout = queryTimeout, until, url } = call
  const limit = {
    ...(bytesMax === undefined ? {} : { bytesMax }),
    ...(until === undefined ? {} : { until })
  }
  if (json === undefined && raw === undefined) {
    const all = call.headers === undefined ? headers : { ...headers, ...call.headers }
    return { method, url, headers: all, timeout, ...limit }
  }
  const { body, type } = bodyOf(call)
  return { method, url, headers: { ...headers, ...type, ...call.headers }, body, timeout, ...limit }
}

/** Sends the request. The purpose decides the error class if there is no response. */
export const send = (
  api: VendorApi,
  call: VendorCall<unknown>
): Effect.Effect<VendorResponse, VendorError> =>
  Effect.suspend(() => {
    return api.http(requestOf(api, call)).pipe(
      Effect.mapError((failure) => noResponseError(call.purpose, failure)),
      Effect.tap((response) => api.observeResponse(response, call.model))
    )
  })

/** Fails with the error of a response that is not 2xx. */
export const failResponse = Effect.fnUntraced(function* (
  api: VendorApi,
  purpose: Purpose,
  response: VendorResponse
) {
  const reported = api.reportedError(response)
  const now = yield* Clock.currentTimeMillis
  const wait = reported?.retryAfterMillis ?? retryAfterMillis(response.headers, now)
  return yield* responseError(
    api.rules,
    purpose,
    response,
    reported === undefined && response.status !== 429
      ? undefined
      : { ...reported, retryAfterMillis: wait }
  )
})

/** Makes one call and decodes its response, or fails with the class of its error. */
export const callVendor = <S extends Schema.ConstraintDecoder<unknown>>(
  api: VendorApi,
  call: VendorCall<S>
): Effect.Effect<S["Type"], VendorError> =>
  Effect.flatMap(send(api, call), (response) => {
    if (!isOk(response)) {
      return failResponse(api, call.purpose, response)
    }
    return Effect.mapError(Effect.fromOption(readAs(call.schema)(response)), () =>
      unreadableError(call.purpose, response)
    )
  })
