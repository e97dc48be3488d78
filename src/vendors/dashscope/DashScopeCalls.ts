import { Duration, Option, Schema } from "effect"
import type { Effect } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorCall } from "../VendorCall.ts"
import type { VendorError } from "../VendorError.ts"
import { reportedError, rules } from "./DashScopeFaults.ts"

/** The timeout of the vendor's SDK. docs/reference/vendors.md#dashscope-wire-protocol */
export const blockingTimeout = Duration.seconds(300)

/** `path` is below `/api/v1`. */
export type Call<S> = Omit<VendorCall<S>, "url"> & { readonly path: string }

export type Calls = <S extends Schema.ConstraintDecoder<unknown>>(
  call: Call<S>
) => Effect.Effect<S["Type"], VendorError>

export const make = ({ account, auth, observeResponse, http }: AdapterContext): Calls => {
  const base = withVersion(account.baseUrl, "/api/v1")
  const api = { http, headers: auth, rules, reportedError, observeResponse }
  return ({ path, ...call }) => callVendor(api, { ...call, url: `${base}${path}` })
}

/**
 * Turns off content inspection for `safety_filter: false`, if the vendor allowed it for the account
 * (`DASHSCOPE_INSPECTION_OPT_OUT`).
 */
export const inspection = (
  context: AdapterContext,
  body: unknown
): Readonly<Record<string, string>> =>
  context.mayDisableInspection && Option.isSome(decodeUninspected(body))
    ? { "x-dashscope-datainspection": '{"input":"disable","output":"disable"}' }
    : {}

const decodeUninspected = Schema.decodeUnknownOption(
  Schema.Struct({ safety_filter: Schema.Literal(false) })
)
