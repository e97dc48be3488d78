import { Duration, Option, Schema } from "effect"
import type { Effect } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../Bases.ts"
import { ask } from "../VendorCall.ts"
import type { Call as AnyCall } from "../VendorCall.ts"
import type { VendorError } from "../VendorError.ts"
import { refusalOf, rules } from "./DashScopeFaults.ts"

/** Creating a task is quick; a blocking generation is given what the vendor's own SDK gives it. */
export const createTimeout = Duration.seconds(60)
export const blockingTimeout = Duration.seconds(300)

/** A call of DashScope's API; `path` stands below `/api/v1`. */
export type Call<S> = Omit<AnyCall<S>, "url"> & { readonly path: string }

export type Calls = <S extends Schema.ConstraintDecoder<unknown>>(
  call: Call<S>
) => Effect.Effect<S["Type"], VendorError>

/** vendors.md A1: bearer key, JSON both ways. */
export const make = ({ account, auth, observeResponse, http }: AdapterContext): Calls => {
  const base = withVersion(account.baseUrl, "/api/v1")
  const dialect = { http, headers: auth, rules, refusalOf, observeResponse }
  return ({ path, ...call }) => ask(dialect, { ...call, url: `${base}${path}` })
}

/**
 * Asks for no inspection of content when the body does (`safety_filter: false`) and the operator says
 * that the vendor allowed it (vendors.md B).
 */
export const inspection = (line: AdapterContext, body: unknown): Readonly<Record<string, string>> =>
  line.mayDisableInspection && Option.isSome(decodeUninspected(body))
    ? { "x-dashscope-datainspection": '{"input":"disable","output":"disable"}' }
    : {}

const decodeUninspected = Schema.decodeUnknownOption(
  Schema.Struct({ safety_filter: Schema.Literal(false) })
)
