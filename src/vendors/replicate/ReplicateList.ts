import { Effect, Schema } from "effect"
import { isSameOrigin } from "../BaseUrl.ts"
import { plainInput } from "../FlatInput.ts"
import { longList, promptIn } from "../JobList.ts"
import { optionalField } from "../OptionalField.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type { Likeness, ListQuery, SubmitRequest } from "../VendorClient.ts"

/** One listed prediction; the vendor omits some fields after an hour. */
const Listed = Schema.Struct({
  id: Schema.NonEmptyString,
  created_at: Schema.String,
  model: optionalField(Schema.String),
  version: optionalField(Schema.String),
  deployment: optionalField(Schema.String),
  input: optionalField(Schema.Record(Schema.String, Schema.Unknown)),
  webhook: optionalField(Schema.String)
})
export type Listed = typeof Listed.Type

const Page = Schema.Struct({
  results: Schema.Array(Listed),
  next: optionalField(Schema.String)
})

/** The most pages that are read, 100 predictions each, newest first. */
const pagesMax = 20

/**
 * The predictions created in this period, newest first. Compares model, version, deployment and input as far as the
 * list shows them; the vendor omits the input after an hour.
 */
export const listed = Effect.fnUntraced(function* (
  api: VendorApi,
  base: string,
  { from, until }: ListQuery
) {
  const found: Array<Listed> = []
  let url = `${base}/predictions`
  for (let page = 1; page <= pagesMax; page += 1) {
    const response: typeof Page.Type = yield* callVendor(api, {
      purpose: "query",
      url,
      schema: Page
    })
    found.push(
      ...response.results.filter(({ created_at: createdAt }) => {
        const at = Date.parse(createdAt)
        return at >= from && at <= until
      })
    )
    const oldest = Date.parse(response.results.at(-1)?.created_at ?? "")
    const { next } = response
    if (next === undefined || !(oldest >= from)) return found
    // The key is sent only to the account's own origin
    if (!isSameOrigin(base, next)) return yield* longList
    url = next
  }
  return yield* longList
})

/** Whether a listed prediction belongs to a request. */
export const likeness = (request: SubmitRequest, it: Listed): Likeness => {
  if (!isTarget(request, it)) return "other"
  const { input: shown = {} } = it
  const prompt = promptIn(request)
  const isShown = (name: string) => Object.hasOwn(shown, name) && shown[name] !== null
  const sent = Object.entries(plainInput(request)).filter(([name]) => isShown(name))
  if (sent.some(([name, value]) => String(shown[name]) !== String(value))) return "other"
  return sent.some(([, value]) => value === prompt) ? "same" : "open"
}

/** `owner/name` of the upstream model `deployments/owner/name`. */
export const deploymentOf = (upstreamModel: string): string | undefined =>
  /^deployments\/([^/]+\/[^/]+)$/u.exec(upstreamModel)?.[1]

const isTarget = ({ upstreamModel }: SubmitRequest, it: Listed): boolean => {
  const deployment = deploymentOf(upstreamModel)
  // A deployment's prediction does not show its model, and belongs only to a submit to that deployment
  if (deployment !== it.deployment) return false
  if (deployment !== undefined) return true
  const [name = "", version = name] = upstreamModel.split(":")
  const isModel = name.includes("/") && it.model !== undefined ? it.model === name : true
  const isVersion =
    version.includes("/") || it.version === undefined ? true : it.version === version
  return isModel && isVersion
}
