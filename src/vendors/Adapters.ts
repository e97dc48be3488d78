import type { CatalogEntry, TaskAdapterName } from "../catalog/CatalogEntry.ts"
import type { ImageInfo } from "../catalog/media/Image.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import type { AdapterContext } from "./AdapterContext.ts"
import * as DashScopeAsync from "./dashscope/DashScopeAsync.ts"
import { hasModel } from "./dashscope/DashScopeModels.ts"
import * as DashScopeSync from "./dashscope/DashScopeSync.ts"
import { takesVideoField, videoValueFault } from "./dashscope/DashScopeVideos.ts"
import * as FalQueue from "./fal/FalQueue.ts"
import { takes } from "./FlatInput.ts"
import * as GeminiImage from "./gemini/GeminiImage.ts"
import * as OpenAiImages from "./openai/OpenAiImages.ts"
import * as OpenAiResponses from "./openai/OpenAiResponses.ts"
import { sizeFault } from "./openai/OpenAiSizes.ts"
import * as OpenAiVideos from "./openai/OpenAiVideos.ts"
import { pictureFault, videoSizeFault } from "./openai/OpenAiVideoSizes.ts"
import * as Replicate from "./replicate/Replicate.ts"
import type { VendorAccount } from "./VendorClient.ts"

/** An implementation of one vendor protocol. */
export interface Adapter {
  /** The provider whose keys it uses. */
  readonly provider: Provider
  /** The headers that carry the key. */
  readonly auth: (key: string) => Readonly<Record<string, string>>
  readonly make: (context: AdapterContext) => VendorAccount
  /**
   * Polls per second of an account, unless the operator sets another rate; absent for blocking calls.
   * docs/reference/vendors.md#poll-rates
   */
  readonly pollsPerSecond?: number
  /** Whether the account has the model; absent: every account has every model. */
  readonly hasModel?: (account: AccountSetting, upstreamModel: string) => boolean
  /** Whether a job can carry this field of the entry's body; absent: it can carry all. */
  readonly takes?: (entry: CatalogEntry, field: string) => boolean
  /** Why the vendor would refuse this value of a field, beyond the rules of the label. */
  readonly valueFault?: (upstreamModel: string, field: string, value: unknown) => string | undefined
  /** Why the vendor would refuse this picture of a decoded body, beyond the rules of the label. */
  readonly pictureFault?: (body: unknown, picture: ImageInfo) => string | undefined
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const google = (key: string) => ({ "x-goog-api-key": key })
const fal = (key: string) => ({ authorization: `Key ${key}` })

/** `safety_filter` is the gateway's own field: an upstream without such a setting inspects content as usual. */
const among =
  (fields: ReadonlySet<string>): NonNullable<Adapter["takes"]> =>
  (_entry, field) =>
    fields.has(field) || field === "safety_filter"

/** The adapters that catalog entries can name. docs/reference/vendors.md#adapters */
export const adapters: { readonly [name in TaskAdapterName]: Adapter } = {
  "dashscope-async": {
    provider: "dashscope",
    auth: bearer,
    make: DashScopeAsync.make,
    pollsPerSecond: 18,
    hasModel,
    takes: ({ upstreamModel }, field) => takesVideoField(upstreamModel, field),
    valueFault: videoValueFault
  },
  "dashscope-sync": {
    provider: "dashscope",
    auth: bearer,
    make: DashScopeSync.make,
    hasModel,
    takes: among(DashScopeSync.taken)
  },
  "gemini-image": {
    provider: "gemini",
    auth: google,
    make: GeminiImage.make,
    takes: among(GeminiImage.taken),
    valueFault: GeminiImage.valueFault
  },
  "openai-image": {
    provider: "openai",
    auth: bearer,
    make: OpenAiImages.make,
    takes: among(OpenAiImages.taken),
    valueFault: sizeFault,
    pictureFault: OpenAiImages.formatFault
  },
  "openai-video": {
    provider: "openai",
    auth: bearer,
    make: OpenAiVideos.make,
    pollsPerSecond: 20,
    hasModel: OpenAiVideos.hasModel,
    takes: among(OpenAiVideos.taken),
    valueFault: videoSizeFault,
    pictureFault
  },
  "openai-responses": {
    provider: "openai",
    auth: bearer,
    make: OpenAiResponses.make,
    pollsPerSecond: 20
  },
  "fal-queue": { provider: "fal", auth: fal, make: FalQueue.make, pollsPerSecond: 200, takes },
  replicate: {
    provider: "replicate",
    auth: bearer,
    make: Replicate.make,
    pollsPerSecond: 40,
    takes
  }
}

/** The providers whose accounts run tasks. */
export const taskProviders: ReadonlySet<Provider> = new Set(
  Object.values(adapters).map(({ provider }) => provider)
)

const byName = new Map(Object.entries(adapters))

export const adapterOf = (name: string): Adapter | undefined => byName.get(name)

/** The accounts of the adapter's provider that have the model. */
export const accountsWith = (
  { hasModel: has, provider }: Adapter,
  upstreamModel: string,
  accounts: ReadonlyArray<AccountSetting>
): ReadonlyArray<AccountSetting> =>
  accounts.filter(
    (account) => account.provider === provider && has?.(account, upstreamModel) !== false
  )
