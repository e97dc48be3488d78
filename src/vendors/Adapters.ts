import type { CatalogVersion } from "../catalog/CatalogContent.ts"
import type { AdapterName, BatchAdapterName } from "../catalog/CatalogEntry.ts"
import { falQueue } from "../catalog/jobs/Fal.ts"
import type { JobProtocol } from "../catalog/jobs/JobProtocol.ts"
import { openAiVideos } from "../catalog/jobs/OpenAiVideos.ts"
import { replicatePredictions } from "../catalog/jobs/Replicate.ts"
import type { AccountSetting, Provider } from "../domain/Provider.ts"
import type { Adapter } from "./Adapter.ts"
import * as AnthropicBatches from "./anthropic/AnthropicBatches.ts"
import * as DashScopeAsync from "./dashscope/DashScopeAsync.ts"
import { hasModel } from "./dashscope/DashScopeModels.ts"
import * as DashScopeSync from "./dashscope/DashScopeSync.ts"
import { takesVideoField, videoValueFault } from "./dashscope/DashScopeVideos.ts"
import { describedAdapter } from "./described/DescribedJobs.ts"
import * as GeminiImage from "./gemini/GeminiImage.ts"
import * as OpenAiBatches from "./openai/OpenAiBatches.ts"
import * as OpenAiImages from "./openai/OpenAiImages.ts"
import * as OpenAiResponses from "./openai/OpenAiResponses.ts"
import { sizeFault } from "./openai/OpenAiSizes.ts"
import { hasVideos, pictureFault, videoFields, videoSizeFault } from "./openai/OpenAiVideoSizes.ts"

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const anthropic = (key: string) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" })
const google = (key: string) => ({ "x-goog-api-key": key })

/**
 * `safety_filter` is the gateway's own field, so every adapter accepts it. An upstream without such a setting inspects
 * content as usual.
 */
const among =
  (fields: ReadonlySet<string>): NonNullable<Adapter["takes"]> =>
  (_entry, field) =>
    fields.has(field) || field === "safety_filter"

type CodedName = AdapterName | "openai-responses" | BatchAdapterName

/** The adapters that catalog entries can name. docs/reference/vendors.md#adapters */
export const adapters: { readonly [name in CodedName]: Adapter } = {
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
    ...describedAdapter("openai", openAiVideos, "/v1"),
    hasModel: hasVideos,
    takes: among(videoFields),
    valueFault: videoSizeFault,
    pictureFault
  },
  "openai-responses": {
    provider: "openai",
    auth: bearer,
    make: OpenAiResponses.make,
    pollsPerSecond: 20
  },
  "openai-batches": {
    provider: "openai",
    auth: bearer,
    make: OpenAiBatches.make,
    pollsPerSecond: 20
  },
  "anthropic-batches": {
    provider: "anthropic",
    auth: anthropic,
    make: AnthropicBatches.make,
    pollsPerSecond: 20
  },
  "fal-queue": describedAdapter("fal", falQueue),
  replicate: describedAdapter("replicate", replicatePredictions, "/v1")
}

/** The providers whose accounts run tasks by code. */
const taskProviders: ReadonlySet<Provider> = new Set(
  Object.values(adapters).map(({ provider }) => provider)
)

const byName = new Map<string, Adapter>(Object.entries(adapters))

/** An adapter that is code. */
export const adapterOf = (name: string): Adapter | undefined => byName.get(name)

const described = new WeakMap<JobProtocol, Adapter>()

const jobsPrefix = "jobs/"

/** The job description that the adapter of this name runs. */
export const jobsIn = ({ jobsOf }: CatalogVersion, name: string): JobProtocol | undefined =>
  name.startsWith(jobsPrefix) ? jobsOf(name.slice(jobsPrefix.length)) : undefined

/** The adapter of a described vendor. Cached, with one adapter per description. */
const describedOf = (catalog: CatalogVersion, name: string): Adapter | undefined => {
  const protocol = jobsIn(catalog, name)
  if (protocol === undefined) return undefined
  const known = described.get(protocol)
  if (known !== undefined) return known
  const made = describedAdapter(name.slice(jobsPrefix.length), protocol)
  described.set(protocol, made)
  return made
}

/** The adapter of this name: one in code, or one that runs a description of the catalog. */
export const adapterIn = (catalog: CatalogVersion, name: string): Adapter | undefined =>
  adapterOf(name) ?? describedOf(catalog, name)

/** Whether the provider's accounts run tasks. */
export const runsTasks = ({ jobsOf }: CatalogVersion, provider: Provider): boolean =>
  taskProviders.has(provider) || jobsOf(provider) !== undefined

/** The accounts of the adapter's provider that have the model. */
export const accountsWith = (
  { hasModel: has, provider }: Adapter,
  upstreamModel: string,
  accounts: ReadonlyArray<AccountSetting>
): ReadonlyArray<AccountSetting> =>
  accounts.filter(
    (account) => account.provider === provider && has?.(account, upstreamModel) !== false
  )
