import type { AdapterName } from "../catalog/CatalogEntry.ts"
import type { Provider } from "../domain/Provider.ts"
import type { AdapterContext } from "./AdapterContext.ts"
import * as DashScopeAsync from "./dashscope/DashScopeAsync.ts"
import * as DashScopeSync from "./dashscope/DashScopeSync.ts"
import * as FalQueue from "./fal/FalQueue.ts"
import * as GeminiImage from "./gemini/GeminiImage.ts"
import * as OpenAiImages from "./openai/OpenAiImages.ts"
import * as OpenAiVideos from "./openai/OpenAiVideos.ts"
import * as Replicate from "./replicate/Replicate.ts"
import type { VendorAccount } from "./VendorClient.ts"

export interface Family {
  /** Whose key opens it. */
  readonly provider: Provider
  /** How the key is sent. */
  readonly auth: (key: string) => Readonly<Record<string, string>>
  readonly make: (line: AdapterContext) => VendorAccount
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const google = (key: string) => ({ "x-goog-api-key": key })
const fal = (key: string) => ({ authorization: `Key ${key}` })

/** Every protocol family: the catalog's `adapter` names one. */
export const families: { readonly [adapter in AdapterName]: Family } = {
  "dashscope-async": { provider: "dashscope", auth: bearer, make: DashScopeAsync.make },
  "dashscope-sync": { provider: "dashscope", auth: bearer, make: DashScopeSync.make },
  "gemini-image": { provider: "gemini", auth: google, make: GeminiImage.make },
  "openai-image": { provider: "openai", auth: bearer, make: OpenAiImages.make },
  "openai-video": { provider: "openai", auth: bearer, make: OpenAiVideos.make },
  "fal-queue": { provider: "fal", auth: fal, make: FalQueue.make },
  replicate: { provider: "replicate", auth: bearer, make: Replicate.make }
}

const adapters = new Map(Object.entries(families))

export const familyOf = (adapter: string): Family | undefined => adapters.get(adapter)
