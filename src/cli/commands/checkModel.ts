import { Clock, Effect, Option, Redacted, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { makeVersion } from "../../catalog/CatalogContent.ts"
import type { CatalogEntry } from "../../catalog/CatalogEntry.ts"
import { readFile, vendorOf } from "../../catalog/CatalogSource.ts"
import { acceptBody } from "../../catalog/media/Media.ts"
import type { AcceptedBody } from "../../catalog/media/Media.ts"
import { capturedBy, quote } from "../../catalog/Price.ts"
import { priceAt } from "../../catalog/PriceRow.ts"
import { format } from "../../domain/Credits.ts"
import type { Credits } from "../../domain/Credits.ts"
import type { AccountSetting } from "../../domain/Provider.ts"
import { startVendorServer } from "../../testing/vendors/VendorServer.ts"
import type { Adapter } from "../../vendors/Adapter.ts"
import { adapterIn } from "../../vendors/Adapters.ts"
import { SecretMask } from "../../vendors/upstream/SecretMask.ts"
import type { SubmitMedium, SubmitRequest, VendorResult } from "../../vendors/VendorClient.ts"
import * as VendorHttp from "../../vendors/VendorHttp.ts"
import { failed } from "../terminal/Fault.ts"
import { note, print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"

const utf8 = new TextDecoder()

/** Longer bodies, such as Base64, are cut. */
const shownCharactersMax = 2000

const cut = (text: string): string =>
  text.length <= shownCharactersMax ? text : `${text.slice(0, shownCharactersMax)}…`

/** Notes each request and its response, without the key. */
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
      Effect.tap((response) =>
        note(safe(`  → ${response.status} ${utf8.decode(response.body)}\n`))
      ),
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

const requestOf = (entry: CatalogEntry, accepted: AcceptedBody): SubmitRequest => ({
  taskId: "00000000-0000-7000-8000-000000000000",
  model: entry.label,
  upstreamModel: entry.upstreamModel,
  body: accepted.body,
  media: mediaOf(accepted),
  result: entry.result,
  ...(entry.described && { described: entry.described })
})

/** Submits a job at the account and polls it until it has ended. */
const runJob = Effect.fnUntraced(function* (
  adapter: Adapter,
  account: AccountSetting,
  request: SubmitRequest
) {
  const http = yield* VendorHttp.make()
  const made = adapter.make({
    account,
    accountId: account.id,
    auth: adapter.auth(Redacted.value(account.key)),
    http: noted(http, account),
    toNamed: http,
    mayDisableInspection: false,
    observeResponse: () => Effect.void
  })
  const submitted = yield* made.submit(request)
  if (submitted._tag === "Done") return { made, result: submitted.result }
  let wait = submitted.pollAfter
  for (;;) {
    yield* Effect.sleep(wait)
    const progress = yield* made.poll(submitted.handle)
    if (progress._tag === "Done") return { made, result: progress.result }
    wait = progress.pollAfter
  }
})

const decodeBody = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

/** The model in the file, and a body for it that passes its rules. */
const readModel = Effect.fnUntraced(function* (file: string, name: string, text: string) {
  const content = yield* Effect.mapError(readFile(file), ({ message }) => failed(message))
  const catalog = makeVersion(content, null)
  const entry = catalog.all.find(
    ({ described, model, vendor }) => described !== undefined && `${vendor}/${model}` === name
  )
  const adapter = entry && adapterIn(catalog, entry.adapter)
  if (entry === undefined || adapter === undefined) {
    return yield* failed(`${file} describes no model ${name}`, "Name it as vendor/model")
  }
  const value = yield* Effect.mapError(decodeBody(text), () =>
    failed("The body is not JSON", 'Pass one as --body \'{"prompt":"…"}\'')
  )
  const accepted = yield* Effect.mapError(acceptBody(entry, value), ({ message }) =>
    failed(`The body breaks the rules of ${name}: ${message}`, "Pass another one with --body")
  )
  const price = priceAt(entry, yield* Clock.currentTimeMillis)
  if (price === undefined) return yield* failed(`${name} has no price today`)
  const held = quote({ price }, accepted.body)
  if (Result.isFailure(held)) return yield* failed(`The hold has no value: ${held.failure}`)
  return { adapter, entry, accepted, price, held: held.success }
})

type Read = Effect.Success<ReturnType<typeof readModel>>

const report = ({ accepted, held, price }: Read, { items, usage = {} }: VendorResult) => {
  const produced = { body: accepted.body, usage, results: items.length }
  const captured: Credits = capturedBy(price, held, produced) ?? held
  const document = {
    results: items.map((it) => (it._tag === "Bytes" ? `${it.bytes.length} bytes` : it.url)),
    usage,
    held: format(held),
    charged: format(captured)
  }
  const text = details([
    ["results", document.results.join(", ")],
    ["usage", JSON.stringify(usage)],
    ["held", document.held],
    ["charged", document.charged]
  ])
  return print(document, text)
}

const file = Flag.String("file").pipe(
  Flag.withDescription("the catalog file that describes it"),
  Flag.withDefault("catalog.json")
)
const body = Flag.String("body").pipe(
  Flag.withDescription("the JSON body of a create"),
  Flag.withDefault("{}")
)
const name = Argument.String("model").pipe(Argument.withDescription("vendor/model"))

/** `gateway models check`: a described model against a server that plays its vendor. docs/cli.md */
export const check = Command.make(
  "check",
  { name, file, body },
  Effect.fnUntraced(function* ({ body, file, name }) {
    const read = yield* readModel(file, name, body)
    const vendor = yield* vendorOf(file, read.entry.vendor)
    if (Option.isNone(vendor)) return yield* failed(`${file} describes no vendor of ${name}`)
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startVendorServer(vendor.value)),
      (it) => Effect.promise(() => it.stop())
    )
    const account = {
      id: `${read.entry.vendor}:check`,
      provider: read.entry.vendor,
      key: Redacted.make(server.key),
      baseUrl: server.url,
      weight: 1
    }
    const request = requestOf(read.entry, read.accepted)
    const { result } = yield* Effect.mapError(runJob(read.adapter, account, request), (error) =>
      failed(`${error.class}: ${error.message}`, "Correct the description")
    )
    yield* report(read, result)
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Run a described model against a server that plays its vendor, and show each request"
  )
)
