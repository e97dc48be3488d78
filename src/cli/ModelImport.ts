import {
  Array as Arr,
  Clock,
  Duration,
  Effect,
  FileSystem,
  Option,
  Redacted,
  Result,
  Schema
} from "effect"
import { bodyParseOptions, faultsOf, pointerOf } from "../catalog/FieldFaults.ts"
import { MediaModel } from "../catalog/jobs/MediaModel.ts"
import { falModel, replicateModel } from "../catalog/jobs/PublishedModel.ts"
import type { PublishedModel } from "../catalog/jobs/PublishedModel.ts"
import { AppConfig } from "../config/Config.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import type { MediaKind } from "../domain/task/Task.ts"
import { withVersion } from "../vendors/BaseUrl.ts"
import { GuardedConnector } from "../vendors/NamedHosts.ts"
import * as VendorHttp from "../vendors/VendorHttp.ts"
import { failed } from "./terminal/Fault.ts"

export interface ImportRequest {
  readonly vendor: "fal" | "replicate"
  readonly id: string
  /** Its public name. Absent: derived from its id. */
  readonly model: string | undefined
  readonly result: MediaKind | undefined
  /** Where to read its schema from. Absent: from the vendor. */
  readonly from: string | undefined
}

/** The maximum size of a document. fal's have about 20 kilobytes. */
const documentBytesMax = 4 * 1024 * 1024
const documentTimeout = Duration.seconds(30)

const ids = {
  fal: /^[A-Za-z0-9][\w.-]{0,63}(?:\/[A-Za-z0-9][\w.-]{0,63}){1,7}$/u,
  replicate: /^[A-Za-z0-9][\w.-]{0,63}\/[A-Za-z0-9][\w.-]{0,63}$/u
}

const falSchemas = "https://fal.ai/api/openapi/queue/openapi.json"

const keyOf = ({ key }: AccountSetting) => ({ authorization: `Bearer ${Redacted.value(key)}` })

/** The URL of the schema, and the account whose key it requires. */
const placeOf = Effect.fnUntraced(function* ({ from, id, vendor }: ImportRequest) {
  if (from !== undefined) return { url: from }
  if (vendor === "fal") {
    return { url: `${falSchemas}?${new URLSearchParams({ endpoint_id: id }).toString()}` }
  }
  const account = (yield* AppConfig).accounts.find(({ provider }) => provider === vendor)
  if (account === undefined) {
    return yield* failed(
      "Replicate shows its models only with a key, and none is set",
      "Set REPLICATE_API_KEY"
    )
  }
  return { url: `${withVersion(account.baseUrl, "/v1")}/models/${id}`, account }
})

const refusals: Readonly<Record<number, string>> = {
  401: "refuses the key",
  403: "refuses the key",
  404: "has no such model"
}

const utf8 = new TextDecoder()
const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Reads the published document. Only the operator's own base URL is read without the egress guard. */
const readDocument = Effect.fnUntraced(function* (request: ImportRequest) {
  const { account, url } = { account: undefined, ...(yield* placeOf(request)) }
  const host = URL.parse(url)?.host ?? ""
  if (!/^https?:\/\//u.test(url) || host === "") {
    return yield* failed(`${url} is not an http or https URL`, "Correct --from")
  }
  const connector = (yield* GuardedConnector)(VendorHttp.connectMillis)
  const http = yield* VendorHttp.make(account === undefined ? { connector } : {})
  const response = yield* http({
    method: "GET",
    url,
    headers: { accept: "application/json", ...(account === undefined ? {} : keyOf(account)) },
    timeout: documentTimeout,
    bytesMax: documentBytesMax
  }).pipe(
    Effect.mapError(({ message }) =>
      failed(`The schema of ${request.id} cannot be read from ${host}: ${message}`)
    )
  )
  const { body, status } = response
  if (status !== 200) {
    return yield* failed(
      `${host} ${refusals[status] ?? `responded with HTTP ${status}`}: ${request.id}`,
      status === 404 ? "Copy the id from the page of the model" : undefined
    )
  }
  const document = decodeJson(utf8.decode(body))
  return Option.isSome(document)
    ? document.value
    : yield* failed(`The schema of ${request.id} at ${host} is not JSON`)
})

/** The public name from an id: `fal-ai/flux/dev` becomes `flux-dev`, and `owner/name` becomes `name`. */
const nameOf = (id: string): string => id.split("/").slice(1).join("-")

const decodeRow = Schema.decodeUnknownResult(MediaModel, bodyParseOptions)

/** The row of the model. Everything but its price must be valid for a reload. */
const rowOf = Effect.fnUntraced(function* (
  { id, model = nameOf(id), vendor }: ImportRequest,
  { notes, ...published }: PublishedModel
) {
  const row = { vendor, model, ...published }
  const decoded = decodeRow({ ...row, price: { per: "call", amount: "1.00" } })
  if (Result.isSuccess(decoded)) return { notes, row }
  const faults = faultsOf(decoded.failure.issue).map((it) => `  ${it.pointer}: ${it.detail}`)
  return yield* failed(
    [`The schema of ${id} cannot be used for a request body:`, ...faults].join("\n"),
    "Describe the model by hand"
  )
})

/** Turns the published schema of a model into a row of `mediaModels` without a price. */
export const importedRow = Effect.fn("ModelImport.importedRow")(function* (request: ImportRequest) {
  const { id, result, vendor } = request
  if (!ids[vendor].test(id)) {
    const example = vendor === "fal" ? "fal-ai/flux/dev" : "black-forest-labs/flux-schnell"
    return yield* failed(`${id} is not a model id of ${vendor}`, `Name it as ${example}`)
  }
  const document = yield* readDocument(request)
  const read = vendor === "fal" ? falModel : replicateModel
  const published = read({ id, document, result })
  if (Result.isFailure(published)) {
    return yield* failed(
      `The schema of ${id} cannot be imported: ${published.failure}`,
      "Pass --result if what it makes is not known; otherwise describe the model by hand"
    )
  }
  return yield* rowOf(request, published.success)
})

const CatalogRows = Schema.StructWithRest(
  Schema.Struct({ mediaModels: Schema.optionalKey(Schema.Array(Schema.Json)) }),
  [Schema.Record(Schema.String, Schema.Json)]
)
const decodeFile = Schema.decodeUnknownEffect(Schema.fromJsonString(CatalogRows))

const sameName = (
  one: unknown,
  { model, vendor }: { readonly model: string; readonly vendor: string }
) =>
  typeof one === "object" &&
  one !== null &&
  "vendor" in one &&
  "model" in one &&
  one.vendor === vendor &&
  one.model === model

/** Adds a row to a catalog file, which is created if necessary. Returns the position of the missing price. */
export const addRow = Effect.fn("ModelImport.addRow")(function* (
  path: string,
  row: Schema.Json & { readonly vendor: string; readonly model: string }
) {
  const files = yield* FileSystem.FileSystem
  const cannot = (what: string) => () => failed(`${path} cannot be ${what}`)
  const isThere = yield* Effect.mapError(files.exists(path), cannot("read"))
  const text = isThere ? yield* Effect.mapError(files.readFileString(path), cannot("read")) : "{}"
  const file = yield* Effect.mapError(decodeFile(text), () =>
    failed(`${path} is not a catalog file`, "Correct it: gateway catalog check")
  )
  const { mediaModels = [] } = file
  if (mediaModels.some((it) => sameName(it, row))) {
    return yield* failed(
      `${path} has the model ${row.vendor}/${row.model}`,
      "Remove it first, or pass another name with --model"
    )
  }
  const next = { ...file, mediaModels: Arr.append(mediaModels, row) }
  // Replaces the file atomically, so that a reload never reads half of it
  const real = isThere ? yield* Effect.mapError(files.realPath(path), cannot("read")) : path
  const part = `${real}.${yield* Clock.currentTimeMillis}.tmp`
  yield* files
    .writeFileString(part, `${JSON.stringify(next, null, 2)}\n`)
    .pipe(Effect.andThen(files.rename(part, real)), Effect.mapError(cannot("written")))
  return pointerOf(["mediaModels", mediaModels.length, "price"])
})
