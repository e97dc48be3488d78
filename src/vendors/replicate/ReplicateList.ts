import { Duration, Effect, Schema } from "effect"
import { isSameOrigin } from "../Bases.ts"
import { maybe } from "../OptionalField.ts"
import { ask } from "../VendorCall.ts"
import type { Dialect } from "../VendorCall.ts"
import type { SubmitRequest } from "../VendorClient.ts"

/** One prediction of the list; some of it is left out for what is older than an hour. */
const Listed = Schema.Struct({
  id: Schema.NonEmptyString,
  created_at: Schema.String,
  model: maybe(Schema.String),
  version: maybe(Schema.String),
  input: maybe(Schema.Struct({ prompt: Schema.optionalKey(Schema.Unknown) }))
})
type Listed = typeof Listed.Type

const Page = Schema.Struct({
  results: Schema.Array(Listed),
  next: maybe(Schema.String)
})

const decodePrompt = Schema.decodeUnknownOption(Schema.Struct({ prompt: Schema.String }))

/** The two clocks may differ by this much. */
const skewMillis = 10_000
const pagesMax = 10

/** When a submit was under way, by the vendor's clock. */
interface Window {
  readonly from: number
  readonly until: number
}

/**
 * The predictions of this model that were created while the submit was under way, newest first. What
 * the list tells of model, version and prompt must be the request's; what it leaves out decides nothing.
 */
export const listed = Effect.fnUntraced(function* (
  dialect: Dialect,
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
    const answer: typeof Page.Type = yield* ask(dialect, { purpose: "ask", url, schema: Page })
    found.push(...answer.results.filter((it) => isOf(request, it, window)))
    const oldest = Date.parse(answer.results.at(-1)?.created_at ?? "")
    // The key goes to the account's own origin alone
    const { next } = answer
    url = oldest >= window.from && next !== undefined && isSameOrigin(base, next) ? next : undefined
  }
  return found
})

const isOf = (request: SubmitRequest, it: Listed, { from, until }: Window): boolean => {
  const at = Date.parse(it.created_at)
  const [name = "", version = name] = request.upstreamModel.split(":")
  const isModel = name.includes("/") && typeof it.model === "string" ? it.model === name : true
  const isVersion =
    version.includes("/") || typeof it.version !== "string" ? true : it.version === version
  return at >= from && at <= until && isModel && isVersion && isPrompt(request, it.input?.prompt)
}

const isPrompt = (request: SubmitRequest, told: unknown): boolean => {
  const asked = decodePrompt(request.body)
  return typeof told !== "string" || asked._tag === "None" || asked.value.prompt === told
}
