import type { AccountSetting } from "../domain/Provider.ts"
import type { ObserveResponse } from "./VendorCall.ts"
import type { VendorHttp } from "./VendorHttp.ts"

/** The account and the means with which an adapter is created. */
export interface AdapterContext {
  readonly account: AccountSetting
  /** Stored with every attempt: `<adapter>@<account id>`. */
  readonly accountId: string
  readonly http: VendorHttp
  /** Sends to a host that the vendor's response named and that is not the account's own. */
  readonly toNamed: VendorHttp
  /** The headers that carry the key. */
  readonly auth: Readonly<Record<string, string>>
  /** The vendor allows the account to turn off content inspection. */
  readonly mayDisableInspection: boolean
  readonly observeResponse: ObserveResponse
}
