import { Duration, Effect, Option } from "effect"
import type { Schema } from "effect"
import { readAs, refused, retryAfterOf, unanswered, unreadable } from "./Faults.ts"
import type { FaultRule, Purpose, Refusal } from "./Faults.ts"
import type { VendorError } from "./VendorError.ts"
import type { VendorAnswer, VendorHttp } from "./VendorHttp.ts"

/** What all calls of one family to one account have in common. */
export interface Dialect {
  readonly http: VendorHttp
  /** Authentication and what else stands in every request. */
  readonly headers: Readonly<Record<string, string>>
  readonly rules: ReadonlyArray<FaultRule>
  /** The vendor's own words in an answer that is not 2xx; `undefined` when they are not the vendor's. */
  readonly refusalOf: (answer: VendorAnswer) => Refusal | undefined
  /** Told of every answer: limits and refused keys are heeded. */
  readonly observeResponse: (answer: VendorAnswer) => Effect.Effect<void>
}

export interface Call<S> {
  readonly purpose: Purpose
  readonly method?: "GET" | "POST" | "PUT"
  readonly url: string
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is, in place of `json`. */
  readonly raw?: { readonly contentType: string; readonly body: Uint8Array }
  readonly headers?: Readonly<Record<string, string>>
  readonly timeout?: Duration.Duration
  readonly bytesMax?: number
  readonly schema: S
}

const askTimeout = Duration.seconds(30)

const bodyOf = ({ json, raw }: Call<unknown>) => {
  if (raw !== undefined) return { type: { "content-type": raw.contentType }, body: raw.body }
  if (json === undefined) return { type: {} }
  return { type: { "content-type": "application/json" }, body: JSON.stringify(json) }
}

/** Sends; what did not come back as an answer is classified by the purpose. */
export const send = Effect.fnUntraced(function* (dialect: Dialect, call: Call<unknown>) {
  const { type, ...body } = bodyOf(call)
  const answer = yield* dialect
    .http({
      method: call.method ?? "GET",
      url: call.url,
      headers: { ...dialect.headers, ...type, ...call.headers },
      ...body,
      timeout: call.timeout ?? askTimeout,
      ...(call.bytesMax === undefined ? {} : { bytesMax: call.bytesMax })
    })
    .pipe(Effect.mapError((failure) => unanswered(call.purpose, failure)))
  yield* dialect.observeResponse(answer)
  return answer
})

/** The refusal in an answer that is not 2xx. */
export const refusalIn = Effect.fnUntraced(function* (
  dialect: Dialect,
  purpose: Purpose,
  answer: VendorAnswer
) {
  const refusal = dialect.refusalOf(answer)
  const wait = yield* retryAfterOf(answer)
  const asked = refusal?.retryAfterMillis ?? wait
  return yield* refused(
    dialect.rules,
    purpose,
    answer,
    refusal === undefined && answer.status !== 429
      ? undefined
      : { ...refusal, retryAfterMillis: asked }
  )
})

/** One call, its answer decoded and its refusal classified. */
export const ask = <S extends Schema.ConstraintDecoder<unknown>>(
  dialect: Dialect,
  call: Call<S>
): Effect.Effect<S["Type"], VendorError> =>
  Effect.gen(function* () {
    const answer = yield* send(dialect, call)
    if (answer.status >= 300 || answer.status < 200) {
      return yield* refusalIn(dialect, call.purpose, answer)
    }
    const decoded = readAs(call.schema)(answer)
    return Option.isSome(decoded) ? decoded.value : yield* unreadable(call.purpose, answer)
  })
