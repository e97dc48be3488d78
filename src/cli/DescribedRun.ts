import { Clock, Effect, Redacted, Result } from "effect"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import type { AcceptedBody } from "../catalog/media/Media.ts"
import { acceptBody } from "../catalog/media/Media.ts"
import { capturedBy, quote } from "../catalog/Price.ts"
import type { PriceRule } from "../catalog/Price.ts"
import { priceAt } from "../catalog/PriceRow.ts"
import { format } from "../domain/Credits.ts"
import type { Credits } from "../domain/Credits.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import type { Adapter } from "../vendors/Adapter.ts"
import { SecretMask } from "../vendors/upstream/SecretMask.ts"
import type { SubmitMedium, SubmitRequest, VendorResult } from "../vendors/VendorClient.ts"
import type * as VendorHttp from "../vendors/VendorHttp.ts"
import { failed } from "./terminal/Fault.ts"
import { note, print } from "./terminal/Output.ts"
import { details } from "./terminal/Table.ts"

const utf8 = new TextDecoder()

/** Longer bodies, such as Base64, are cut. */
const shownCharactersMax = 2000

const cut = (text: string): string =>
  text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`

const isText = /json|text/u

/**
 * The text of a response. For sound and images only the size is shown, because their bytes would control the terminal.
 */
const bodyText = ({ body, headers }: VendorHttp.VendorResponse): string =>
  isText.test(headers["content-type"] ?? "json") ? utf8.decode(body) : `${body.length} bytes`

/** Prints each request and its response, without the key. */
const noted =
  (http: VendorHttp.VendorHttp, account: AccountSetting): VendorHttp.VendorHttp =>
  (call) => {
    const mask = SecretMask.of(account)
    const safe = (text: string) => cut(utf8.decode(mask.bytes(Buffer.from(text))))
    const body = typeof call.body === "string" ? call.body : ""
    const headers = Object.entries(call.headers).map(([name, value]) => `  ${name}: ${value}`)
    const request = [
      `${call.method} ${call.url}`,
      ...headers,
      ...(body === "" ? [] : [`  ${body}`])
    ]
    return note(safe(request.join("\n"))).pipe(
      Effect.andThen(http(call)),
      Effect.tap((response) => note(safe(`  → ${response.status} ${bodyText(response)}\n`))),
      Effect.tapError(({ message }) => note(`  → ${message}\n`))
    )
  }

const mediaOf = ({ media, urls }: AcceptedBody): ReadonlyArray<SubmitMedium> => [
  ...media.map(({ bytes, mime, pointer }) => ({
    pointer,
    mime,
    size: bytes.length,
    artifactUrl: "https://artifacts.invalid/1",
    bytes: Effect.succeed(bytes)
  })),
  ...urls.map(({ pointer, url }) => ({
    pointer,
    mime: "application/octet-stream",
    size: 0,
    sourceUrl: url,
    artifactUrl: url,
    bytes: Effect.succeed(new Uint8Array())
  }))
]

const requestOf = (entry: CatalogEntry, { accepted, taskId }: Order): SubmitRequest => ({
  taskId,
  model: entry.label,
  upstreamModel: entry.upstreamModel,
  body: accepted.body,
  media: mediaOf(accepted),
  result: entry.result,
  ...(entry.input && { input: entry.input }),
  ...(entry.output && { output: entry.output }),
  ...(entry.described && { described: entry.described })
})

/** A body that is valid for its model, and its price. */
interface Order {
  readonly taskId: string
  readonly accepted: AcceptedBody
  readonly price: PriceRule
  readonly held: Credits
}

/** Validates a body by the rules of a model and prices it. */
export const orderOf = Effect.fnUntraced(function* (
  entry: CatalogEntry,
  body: unknown,
  taskId: string
) {
  const name = `${entry.vendor}/${entry.model}`
  const accepted = yield* Effect.mapError(acceptBody(entry, body), ({ message }) =>
    failed(`The body breaks the rules of ${name}: ${message}`, "Pass another one with --body")
  )
  const price = priceAt(entry, yield* Clock.currentTimeMillis)
  if (price === undefined) return yield* failed(`${name} has no price today`)
  const held = quote({ price }, accepted.body)
  if (Result.isFailure(held)) return yield* failed(`The hold has no value: ${held.failure}`)
  return { taskId, accepted, price, held: held.success } satisfies Order
})

interface Means {
  readonly adapter: Adapter
  readonly account: AccountSetting
  readonly http: VendorHttp.VendorHttp
  /** For requests to hosts that a response names. */
  readonly toNamed: VendorHttp.VendorHttp
}

/** Submits a job at the account and polls it until it has ended. Prints each request. */
export const runJob = Effect.fnUntraced(function* (
  { account, adapter, http, toNamed }: Means,
  entry: CatalogEntry,
  order: Order
) {
  const made = adapter.make({
    account,
    accountId: account.id,
    auth: adapter.auth(Redacted.value(account.key)),
    http: noted(http, account),
    toNamed: noted(toNamed, account),
    mayDisableInspection: false,
    observeResponse: () => Effect.void
  })
  const submitted = yield* made.submit(requestOf(entry, order))
  if (submitted._tag === "Done") return submitted.result
  let wait = submitted.pollAfter
  for (;;) {
    yield* Effect.sleep(wait)
    const progress = yield* made.poll(submitted.handle)
    if (progress._tag === "Done") return progress.result
    wait = progress.pollAfter
  }
})

/** Prints the results and their price in the catalog. */
export const report = (
  { accepted, held, price }: Order,
  { items, usage = {} }: VendorResult,
  more: Readonly<Record<string, string>> = {}
) => {
  const produced = { body: accepted.body, usage, results: items.length }
  const captured: Credits = capturedBy(price, held, produced) ?? held
  const document = {
    ...more,
    results: items.map((it) => (it._tag === "Bytes" ? `${it.bytes.length} bytes` : it.url)),
    usage,
    held: format(held),
    charged: format(captured)
  }
  const text = details([
    ...Object.entries(more),
    ["results", document.results.join(", ")],
    ["usage", JSON.stringify(usage)],
    ["held", document.held],
    ["charged", document.charged]
  ])
  return print(document, text)
}
