import type { AccountSetting } from "../domain/Provider.ts"
import type { ObserveResponse } from "./VendorCall.ts"
import type { VendorHttp } from "./VendorHttp.ts"

/** What an adapter is made with. */
export interface AdapterContext {
  readonly account: AccountSetting
  /** Stored with every attempt: `<adapter>@<account id>`. */
  readonly accountId: string
  readonly http: VendorHttp
  /** To a host that the vendor's response named, and that is not the account's own. */
  readonly toNamed: VendorHttp
  /** The headers that carry the key. */
  readonly auth: Readonly<Record<string, string>>
  /** The vendor allows the account to switch the inspection of content off. */
  readonly mayDisableInspection: boolean
  readonly observeResponse: ObserveResponse
}
