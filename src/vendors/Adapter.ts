import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import type { ImageInfo } from "../catalog/media/Image.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import type { AdapterContext } from "./AdapterContext.ts"
import type { VendorAccount } from "./VendorClient.ts"

/** An implementation of one vendor protocol. */
export interface Adapter {
  /** The provider whose keys it uses. */
  readonly provider: Provider
  /** The headers that carry the key. */
  readonly auth: (key: string) => Readonly<Record<string, string>>
  readonly make: (context: AdapterContext) => VendorAccount
  /**
   * Polls per second for one account, unless the operator sets another rate. Absent if the adapter's calls block.
   * docs/reference/vendors.md#poll-rates
   */
  readonly pollsPerSecond?: number
  /** Whether the account has the model. If absent, every account has every model. */
  readonly hasModel?: (account: AccountSetting, upstreamModel: string) => boolean
  /** Whether a job can carry this field of the entry's body. If absent, it can carry all fields. */
  readonly takes?: (entry: CatalogEntry, field: string) => boolean
  /** Why the vendor would refuse this value of a field, beyond the rules of the label. */
  readonly valueFault?: (upstreamModel: string, field: string, value: unknown) => string | undefined
  /** Why the vendor would refuse this picture of a decoded body, beyond the rules of the label. */
  readonly pictureFault?: (body: unknown, picture: ImageInfo) => string | undefined
}
