import { Effect, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { makeVersion } from "../../catalog/CatalogContent.ts"
import { readFile, vendorOf } from "../../catalog/CatalogSource.ts"
import { startVendorServer } from "../../testing/vendors/VendorServer.ts"
import { adapterIn } from "../../vendors/Adapters.ts"
import * as VendorHttp from "../../vendors/VendorHttp.ts"
import { orderOf, report, runJob } from "../DescribedRun.ts"
import { failed } from "../terminal/Fault.ts"

const taskId = "00000000-0000-7000-8000-000000000000"

/** The vendors of `mediaModels`, which need no description in the catalog. */
const publishers = ["fal", "replicate"] as const

export const decodeBody = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

/** Reads the model from the file, and a valid body for it. */
const readModel = Effect.fnUntraced(function* (file: string, name: string, text: string) {
  const content = yield* Effect.mapError(readFile(file), ({ message }) => failed(message))
  const catalog = makeVersion(content, null)
  const entry = catalog.all.find(
    ({ described, model, vendor }) => described !== undefined && `${vendor}/${model}` === name
  )
  const adapter = entry && adapterIn(catalog, entry.adapter)
  if (entry === undefined || adapter === undefined) {
    return yield* failed(`${file} does not describe the model ${name}`, "Name it as vendor/model")
  }
  const value = yield* Effect.mapError(decodeBody(text), () =>
    failed("The body is not JSON", 'Pass one as --body \'{"prompt":"…"}\'')
  )
  return { adapter, entry, order: yield* orderOf(entry, value, taskId) }
})

const file = Flag.String("file").pipe(
  Flag.withDescription("the catalog file that describes it"),
  Flag.withDefault("catalog.json")
)
const body = Flag.String("body").pipe(
  Flag.withDescription("the JSON body of a create"),
  Flag.withDefault("{}")
)
const name = Argument.String("model").pipe(Argument.withDescription("vendor/model"))

/** `gateway models check`: runs a described model against a server that simulates its vendor. docs/cli.md */
export const check = Command.make(
  "check",
  { name, file, body },
  Effect.fnUntraced(function* ({ body, file, name }) {
    const read = yield* readModel(file, name, body)
    const described = yield* vendorOf(file, read.entry.vendor)
    const vendor = Option.orElse(described, () =>
      Option.fromUndefinedOr(publishers.find((it) => it === read.entry.vendor))
    )
    if (Option.isNone(vendor))
      return yield* failed(`${file} does not describe the vendor of ${name}`)
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startVendorServer(vendor.value)),
      (it) => Effect.promise(() => it.stop())
    )
    const account = {
      id: `${read.entry.vendor}:check`,
      provider: read.adapter.provider,
      key: Redacted.make(server.key),
      baseUrl: server.url,
      weight: 1
    }
    const http = yield* VendorHttp.make()
    const means = { adapter: read.adapter, account, http, toNamed: http }
    const result = yield* Effect.mapError(runJob(means, read.entry, read.order), (error) =>
      failed(`${error.class}: ${error.message}`, "Correct the description")
    )
    yield* report(read.order, result)
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "Run a described model against a server that plays its vendor, and show each request"
  )
)
