import { Duration } from "effect"
import type { Effect } from "effect"
import type { AccountSetting, Provider } from "../../domain/Provider.ts"
import { withVersion } from "../BaseUrl.ts"
import { isOk } from "../VendorHttp.ts"
import type { NoResponse, VendorHttp, VendorResponse } from "../VendorHttp.ts"

interface FreeCall {
  /** The path below the account's base, with its version. */
  readonly path: string
  readonly version?: `/${string}`
  readonly authorization: (key: string) => string
  /** Statuses that prove a valid key, in addition to 2xx. */
  readonly alsoOk?: ReadonlyArray<number>
}

/** An id that no request has. */
const nobody = "00000000-0000-0000-0000-000000000000"

const bearer = (key: string) => `Bearer ${key}`

/** Free calls for providers without passthrough routes. docs/reference/vendors.md#checks-of-accounts */
const freeCalls: ReadonlyMap<Provider, FreeCall> = new Map<Provider, FreeCall>([
  [
    "dashscope",
    { path: "/tasks/?page_no=1&page_size=1", version: "/api/v1", authorization: bearer }
  ],
  ["replicate", { path: "/account", version: "/v1", authorization: bearer }],
  [
    "fal",
    {
      path: `/fal-ai/flux/requests/${nobody}/status`,
      authorization: (key) => `Key ${key}`,
      alsoOk: [404]
    }
  ]
])

export const freeCallOf = (provider: Provider): FreeCall | undefined => freeCalls.get(provider)

export const isGood = ({ alsoOk = [] }: FreeCall, status: number): boolean =>
  isOk({ status }) || alsoOk.includes(status)

const timeout = Duration.seconds(30)
const bytesMax = 1024 * 1024

export const sendFreeCall = (
  http: VendorHttp,
  account: AccountSetting,
  key: string,
  { authorization, path, version }: FreeCall
): Effect.Effect<VendorResponse, NoResponse> =>
  http({
    method: "GET",
    url: `${version === undefined ? account.baseUrl : withVersion(account.baseUrl, version)}${path}`,
    headers: { authorization: authorization(key), accept: "application/json" },
    timeout,
    bytesMax
  })
