import type { AdapterName } from "../../src/catalog/CatalogEntry.ts"
import type { UpstreamInput } from "../../src/catalog/UpstreamInput.ts"
import { dashscope } from "../../src/testing/vendors/DashScopeProtocol.ts"
import { fal } from "../../src/testing/vendors/FalProtocol.ts"
import { gemini } from "../../src/testing/vendors/GeminiProtocol.ts"
import { openai } from "../../src/testing/vendors/OpenAiProtocol.ts"
import { replicate } from "../../src/testing/vendors/ReplicateProtocol.ts"
import { pixel, Upstream } from "./upstreams/Upstream.ts"

/** Every vendor of the service as an upstream on 127.0.0.1, and the settings with which a gateway connects to it. */
export interface Upstreams {
  readonly dashscope: Upstream
  readonly gemini: Upstream
  readonly openai: Upstream
  readonly fal: Upstream
  readonly replicate: Upstream
}

export const startUpstreams = async (): Promise<Upstreams> => ({
  dashscope: await Upstream.start(dashscope),
  gemini: await Upstream.start(gemini),
  openai: await Upstream.start(openai),
  fal: await Upstream.start(fal),
  replicate: await Upstream.start(replicate)
})

/** The keys and bases of a gateway that uses these vendors. */
export const vendorEnv = (upstreams: Upstreams): Record<string, string> => ({
  DASHSCOPE_API_KEY: upstreams.dashscope.key,
  DASHSCOPE_BASE_URL: `${upstreams.dashscope.url}/api/v1`,
  GEMINI_API_KEY: upstreams.gemini.key,
  GEMINI_BASE_URL: upstreams.gemini.url,
  OPENAI_API_KEY: upstreams.openai.key,
  OPENAI_BASE_URL: `${upstreams.openai.url}/v1`,
  FAL_API_KEY: upstreams.fal.key,
  FAL_BASE_URL: upstreams.fal.url,
  REPLICATE_API_KEY: upstreams.replicate.key,
  REPLICATE_BASE_URL: `${upstreams.replicate.url}/v1`
})

/** A protocol family, and a model of it for the catalog. */
export interface Family {
  readonly adapter: AdapterName
  readonly upstream: keyof Upstreams
  readonly label: string
  readonly action: "generation" | "edit"
  readonly upstreamModel: string
  readonly input?: UpstreamInput
  readonly result: "images" | "videos"
  /** The price in credits of one task with `bodyOf`. */
  readonly price: string
  readonly isBlocking: boolean
  /** Whether the vendor's list shows a job whose response was lost. */
  readonly canList: boolean
  readonly canCancel: boolean
  /** Whether the vendor's result URLs are valid for 24 hours without a key. */
  readonly hasLastingUrls: boolean
}

const image = {
  label: "text-to-image-preview",
  action: "generation",
  result: "images",
  price: "3.00",
  isBlocking: false,
  canList: false,
  canCancel: false,
  hasLastingUrls: false
} as const

export const families: ReadonlyArray<Family> = [
  {
    ...image,
    adapter: "dashscope-async",
    upstream: "dashscope",
    upstreamModel: "wan2.5-t2i-preview",
    canList: true,
    canCancel: true,
    hasLastingUrls: true
  },
  {
    ...image,
    adapter: "dashscope-sync",
    upstream: "dashscope",
    // Not a model for which the gateway enforces a limit
    upstreamModel: "z-image-turbo",
    isBlocking: true,
    hasLastingUrls: true
  },
  {
    ...image,
    adapter: "gemini-image",
    upstream: "gemini",
    label: "image-edit-pro",
    action: "edit",
    upstreamModel: "gemini-3-pro-image",
    price: "13.40",
    isBlocking: true
  },
  {
    ...image,
    adapter: "openai-image",
    upstream: "openai",
    upstreamModel: "gpt-image-1.5",
    isBlocking: true
  },
  {
    ...image,
    adapter: "openai-video",
    upstream: "openai",
    label: "text-to-video-spark",
    upstreamModel: "sora-2",
    result: "videos",
    price: "50.00",
    canList: true
  },
  {
    ...image,
    adapter: "fal-queue",
    upstream: "fal",
    upstreamModel: "fal-ai/flux/dev",
    input: { fields: { n: "num_images" } },
    canCancel: true,
    hasLastingUrls: true
  },
  {
    ...image,
    adapter: "replicate",
    upstream: "replicate",
    upstreamModel: "black-forest-labs/flux-schnell",
    input: { fields: { n: "num_outputs" } },
    canList: true,
    canCancel: true
  }
]

export const familyOf = (adapter: AdapterName): Family => {
  const family = families.find((it) => it.adapter === adapter)
  if (family === undefined) throw new RangeError(`There is no family ${adapter}`)
  return family
}

/** A body for the family's label. */
export const bodyOf = ({ label }: Family, prompt: string): object => {
  if (label === "image-edit-pro") {
    return { prompt, images: [`data:image/png;base64,${pixel.toString("base64")}`] }
  }
  return label === "text-to-video-spark" ? { prompt } : { prompt, n: 1 }
}

export type Artifacts = "copy" | "vendor-url"

const modelOf = ({ adapter }: Family, artifacts: Artifacts) => `${adapter}-${artifacts}`

/** The create path of the family's model whose results are copied or passed through. */
export const pathOf = (family: Family, artifacts: Artifacts = "copy"): string =>
  `/vendors/test/v1/${modelOf(family, artifacts)}/${family.action}`

/** A `CATALOG_FILE` with two models of each family. */
export const catalogOfFamilies = {
  add: families.flatMap((family) =>
    (["copy", "vendor-url"] as const).map((artifacts) => ({
      label: family.label,
      vendor: "test",
      model: modelOf(family, artifacts),
      action: family.action,
      adapter: family.adapter,
      upstreamModel: family.upstreamModel,
      input: family.input,
      result: family.result,
      artifacts
    }))
  )
}
