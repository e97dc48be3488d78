import type { AccountSetting, Region } from "../../domain/Provider.ts"
import type { SubmitRequest } from "../VendorClient.ts"

/** The vendor's limits for one model of an account. */
export interface ModelLimit {
  /** The most submits within `perMillis`. */
  readonly calls: number
  readonly perMillis: number
  /** The most concurrent jobs. Absent for blocking calls. */
  readonly concurrent?: number
}

interface ModelRow {
  readonly models: RegExp
  /** A region that is not listed does not have the model. */
  readonly at: Readonly<Partial<Record<Region, ModelLimit>>>
}

const perSecond = (calls: number, concurrent: number): ModelLimit => ({
  calls,
  perMillis: 1000,
  concurrent
})
const blockingPerSecond = (calls: number): ModelLimit => ({ calls, perMillis: 1000 })
const blockingPerMinute = (calls: number): ModelLimit => ({ calls, perMillis: 60_000 })

const asia = (limit: ModelLimit) => ({ "cn-beijing": limit, "ap-southeast-1": limit })
const everywhere = (limit: ModelLimit) => ({
  ...asia(limit),
  "us-east-1": limit,
  "eu-central-1": limit
})

/** The first matching row applies. docs/reference/vendors.md#dashscope-rates */
const rows: ReadonlyArray<ModelRow> = [
  { models: /^qwen-image-(?:(?:edit-)?max|2\.0-pro)/u, at: asia(blockingPerMinute(2)) },
  { models: /^qwen-image/u, at: asia(blockingPerSecond(2)) },
  { models: /^wan2\.6-(?:t2v|i2v)-us$/u, at: { "us-east-1": perSecond(5, 5) } },
  {
    models: /^wan2\.6-t2i/u,
    at: { ...everywhere(perSecond(5, 5)), "cn-beijing": perSecond(1, 5) }
  },
  { models: /^wan2\.6-(?:t2v|i2v|r2v|image)$/u, at: everywhere(perSecond(5, 5)) },
  { models: /^wan2\.[567]-/u, at: asia(perSecond(5, 5)) },
  { models: /^wan2\.2-(?:t2v|i2v|kf2v|t2i)-/u, at: asia(perSecond(2, 2)) },
  {
    models: /^wanx?2\.1-kf2v-/u,
    at: { "cn-beijing": perSecond(2, 2), "ap-southeast-1": perSecond(1, 2) }
  },
  { models: /^wanx?2\.1-/u, at: asia(perSecond(2, 2)) }
]

/** The regions in the rows. In other regions no model is known to be missing. */
const listed = new Set<Region | undefined>([
  "cn-beijing",
  "ap-southeast-1",
  "us-east-1",
  "eu-central-1"
])

const hosts: ReadonlyArray<readonly [RegExp, Region]> = [
  [/^dashscope\.aliyuncs\.com$/u, "cn-beijing"],
  [/^dashscope-intl\.aliyuncs\.com$/u, "ap-southeast-1"],
  [/^dashscope-us\.aliyuncs\.com$/u, "us-east-1"],
  [/\.cn-beijing\.maas\.aliyuncs\.com$/u, "cn-beijing"],
  [/\.ap-southeast-1\.maas\.aliyuncs\.com$/u, "ap-southeast-1"],
  [/\.us-east-1\.maas\.aliyuncs\.com$/u, "us-east-1"],
  [/\.eu-central-1\.maas\.aliyuncs\.com$/u, "eu-central-1"],
  [/\.cn-hongkong\.maas\.aliyuncs\.com$/u, "cn-hongkong"],
  [/\.ap-northeast-1\.maas\.aliyuncs\.com$/u, "ap-northeast-1"]
]

/** The `region` setting, else the region of the base; `undefined` for a host that is not the vendor's. */
export const regionOf = ({ baseUrl, region }: AccountSetting): Region | undefined =>
  region ?? hosts.find(([host]) => host.test(new URL(baseUrl).hostname))?.[1]

/** Whether the account's region has the model, according to the vendor's documentation. ADR 0070. */
export const hasModel = (account: AccountSetting, upstreamModel: string): boolean => {
  const region = regionOf(account)
  const row = rows.find(({ models }) => models.test(upstreamModel))
  return (
    row === undefined || region === undefined || !listed.has(region) || row.at[region] !== undefined
  )
}

/** Models of 2.1 are `wanx2.1-…` in Beijing and `wan2.1-…` elsewhere; others have one id. */
export const modelIdAt = (account: AccountSetting, upstreamModel: string): string => {
  const region = regionOf(account)
  if (region === undefined) return upstreamModel
  return upstreamModel.replace(/^wanx?2\.1-/u, region === "cn-beijing" ? "wanx2.1-" : "wan2.1-")
}

/** The request with the model's id in the account's region. */
export const inRegion = (account: AccountSetting, request: SubmitRequest): SubmitRequest => ({
  ...request,
  upstreamModel: modelIdAt(account, request.upstreamModel)
})

const isStricter = (one: ModelLimit, other: ModelLimit): boolean =>
  one.calls / one.perMillis < other.calls / other.perMillis

/** The limit in the account's region; the strictest one if the region is unknown. */
export const limitOf = (account: AccountSetting, upstreamModel: string): ModelLimit | undefined => {
  const row = rows.find(({ models }) => models.test(upstreamModel))
  if (row === undefined) return undefined
  const region = regionOf(account)
  const own = region === undefined ? undefined : row.at[region]
  return own ?? Object.values(row.at).reduce((most, it) => (isStricter(it, most) ? it : most))
}
