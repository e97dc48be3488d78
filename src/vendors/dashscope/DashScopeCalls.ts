import { Duration, Effect, Option, Redacted } from "effect"
import type { Schema } from "effect"
import { readAs, refused, retryAfterOf, unanswered, unreadable } from "../Faults.ts"
import type { Purpose } from "../Faults.ts"
import type { AccountKey } from "../Families.ts"
import type { VendorError } from "../VendorClient.ts"
import type { VendorAnswer, VendorHttp } from "../VendorHttp.ts"
import { refusalOf, rules } from "./DashScopeFaults.ts"

/** Creating a task is quick; a blocking generation is given what the vendor's own SDK gives it. */
export const createTimeout = Duration.seconds(60)
export const blockingTimeout = Duration.seconds(300)
const askTimeout = Duration.seconds(30)

/** One call of DashScope's API, its answer decoded and its refusal classified. */
export interface Call<S> {
  readonly purpose: Purpose
  readonly method?: "GET" | "POST"
  /** Below `/api/v1`. */
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly timeout?: Duration.Duration
  readonly schema: S
}

export type Calls = <S extends Schema.ConstraintDecoder<unknown>>(
  call: Call<S>
) => Effect.Effect<S["Type"], VendorError>

/** vendors.md A1: bearer key, JSON both ways. */
export const make =
  (http: VendorHttp, account: AccountKey): Calls =>
  (call) =>
    Effect.gen(function* () {
      const { purpose } = call
      const answer: VendorAnswer = yield* http({
        method: call.method ?? "GET",
        url: `${account.baseUrl}${call.path}`,
        headers: {
          authorization: `Bearer ${Redacted.value(account.apiKey)}`,
          ...(call.body === undefined ? {} : { "content-type": "application/json" }),
          ...call.headers
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        timeout: call.timeout ?? askTimeout
      }).pipe(Effect.mapError((failure) => unanswered(purpose, failure)))
      if (answer.status >= 300) {
        const refusal = refusalOf(answer)
        const retryAfterMillis = yield* retryAfterOf(answer)
        return yield* refused(
          rules,
          purpose,
          answer,
          refusal === undefined ? undefined : { ...refusal, retryAfterMillis }
        )
      }
      const decoded = readAs(call.schema)(answer)
      return Option.isSome(decoded) ? decoded.value : yield* unreadable(purpose, answer)
    })
