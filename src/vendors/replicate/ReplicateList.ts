import { Duration, Effect, Schema } from "effect"
import { isSameOrigin } from "../BaseUrl.ts"
import { optionalField } from "../OptionalField.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type { SubmitRequest } from "../VendorClient.ts"

/** One listed prediction; the vendor omits some fields after an hour. */
const Listed = Schema.Struct({
  id: Schema.NonEmptyString,
  created_at: Schema.String,
  model: optionalField(Schema.String),
  version: optionalField(Schema.String),
  deployment: optionalField(Schema.String),
  input: optionalField(Schema.Struct({ prompt: Schema.optionalKey(Schema.Unknown) }))
})
type Listed = typeof Listed.Type

const Page = Schema.Struct({
  results: Schema.Array(Listed),
  next: optionalField(Schema.String)
})

const decodePrompt = Schema.decodeUnknownOption(Schema.Struct({ prompt: Schema.String }))

/** Clock skew between the gateway and the vendor. */
const skewMillis = 10_000
const pagesMax = 10

/** The time of the submit, by the vendor's clock; milliseconds. */
interface Window {
  readonly from: number
  readonly until: number
}

/**
 * The predictions that were created while the submit was under way, newest first. Listed model, version
 * and prompt must be equal to the request's; omitted ones are ignored.
 */
export const listed = Effect.fnUntraced(function* (
  api: VendorApi,
  base: string,
  request: SubmitRequest,
  startedAtMillis: number,
  createTimeout: Duration.Duration
) {
  const window = {
    from: startedAtMillis - skewMillis,
    until: startedAtMillis + Duration.toMillis(createTimeout) + skewMillis
  }
  const found: Array<Listed> = []
  let url: string | undefined = `${base}/predictions`
  for (let page = 1; page <= pagesMax && url !== undefined; page += 1) {
    const response: typeof Page.Type = yield* callVendor(api, {
      purpose: "query",
      url,
      schema: Page
    })
    found.push(...response.results.filter((it) => isOf(request, it, window)))
    const oldest = Date.parse(response.results.at(-1)?.created_at ?? "")
    // The key is sent to the account's own origin only
    const { next } = response
    url = oldest >= window.from && next !== undefined && isSameOrigin(base, next) ? next : undefined
  }
  return found
})

/** `owner/name` of an upstream model `deployments/owner/name`. */
export const deploymentOf = (upstreamModel: string): string | undefined =>
  /^deployments\/([^/]+\/[^/]+)$/u.exec(upstreamModel)?.[1]

const isOf = (request: SubmitRequest, it: Listed, { from, until }: Window): boolean => {
  const at = Date.parse(it.created_at)
  return at >= from && at <= until && isTarget(request, it) && isPrompt(request, it.input?.prompt)
}

const isTarget = ({ upstreamModel }: SubmitRequest, it: Listed): boolean => {
  const deployment = deploymentOf(upstreamModel)
  // A deployment hides its model, and its jobs are no other submit's
  if (deployment !== it.deployment) return false
  if (deployment !== undefined) return true
  const [name = "", version = name] = upstreamModel.split(":")
  const isModel = name.includes("/") && it.model !== undefined ? it.model === name : true
  const isVersion =
    version.includes("/") || it.version === undefined ? true : it.version === version
  return isModel && isVersion
}

const isPrompt = (request: SubmitRequest, listed: unknown): boolean => {
  const requested = decodePrompt(request.body)
  return (
    typeof listed !== "string" || requested._tag === "None" || requested.value.prompt === listed
  )
}
