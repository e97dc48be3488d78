import type { Effect } from "effect"
import type { AccountSetting } from "../domain/Provider.ts"
import type { VendorAnswer, VendorHttp } from "./VendorHttp.ts"

/** What an adapter is made of: the account, the wire to it, and the id that attempts are stored under. */
export interface AdapterContext {
  readonly account: AccountSetting
  readonly accountId: string
  readonly http: VendorHttp
  /** The headers that carry the key. */
  readonly auth: Readonly<Record<string, string>>
  /** The vendor lets the account ask for no inspection of content. */
  readonly mayDisableInspection: boolean
  readonly observeResponse: (answer: VendorAnswer) => Effect.Effect<void>
}
