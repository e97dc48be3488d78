import { Schema, Struct } from "effect"
import { dialects, jobsDialect, keySchemes } from "../domain/Provider.ts"
import type { CatalogEntry } from "./CatalogEntry.ts"
import { entryOf, JobModel } from "./jobs/JobModel.ts"
import { JobProtocol } from "./jobs/JobProtocol.ts"
import { dialectRoute, TokenModel } from "./OpenRoutes.ts"
import type { OpenRoute } from "./OpenRoutes.ts"

/** Also the prefix of the vendor's variables and accounts, so every name must be distinct. */
const VendorName = Schema.String.check(
  Schema.isPattern(/^[a-z][a-z0-9]{0,30}(?:-[a-z0-9]{1,30}){0,3}$/u, {
    expected: "lower-case letters and digits in words with hyphens between them"
  })
)

const isPublicBase = (text: string): boolean => {
  const url = URL.parse(text)
  return (
    url !== null &&
    url.protocol === "https:" &&
    [url.search, url.hash, url.username, url.password, url.port].every((part) => part === "") &&
    /^(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*$/u.test(url.hostname) &&
    !/\.(?:local|localhost|internal)$/u.test(url.hostname)
  )
}

/** Catalog files may come from third parties, so only the operator's variables may name a non-public address. */
const PublicBase = Schema.String.check(
  Schema.makeFilter<string>(
    (text) =>
      isPublicBase(text) ||
      "Expected an https URL of a public host without port and query; for any other, set the vendor's …_BASE_URL"
  )
)

const Usage = Schema.Struct({
  inStreams: Schema.optionalKey(Schema.Literal("unasked")),
  cachedTokens: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[a-z][a-z_]{0,63}$/u, { expected: "the name of a member of usage" })
    )
  ),
  reasoningTokens: Schema.optionalKey(Schema.Literal("beside")),
  reasoning: Schema.optionalKey(Schema.Literal("shown"))
})

const provider = {
  name: VendorName,
  base: Schema.optionalKey(PublicBase),
  usage: Schema.optionalKey(Usage)
}

const auth = Schema.Literals(keySchemes)
const dialect = Schema.Literals(dialects)

/** A provider added by a catalog. */
export const CatalogProvider = Schema.Struct({
  ...provider,
  auth,
  dialect,
  jobs: Schema.optionalKey(JobProtocol),
  /** True for a base from a catalog file: only public addresses are allowed. */
  guarded: Schema.optionalKey(Schema.Boolean)
})
export type CatalogProvider = typeof CatalogProvider.Type

/**
 * A vendor in a catalog file, with everything that the gateway needs to sell its models. A vendor of language models
 * has a `dialect`; a vendor of images, videos or audio has `jobs`; a vendor may have both. docs/catalog.md#vendors, ADR
 * 0296, ADR 0298
 */
export const Vendor = Schema.Struct({
  ...provider,
  auth: Schema.optionalKey(auth),
  dialect: Schema.optionalKey(dialect),
  /** The open routes of its dialect, with the vendor's own version segment. */
  routes: Schema.optionalKey(
    Schema.Array(Schema.String).check(Schema.isMinLength(1, { message: "Expected at least one" }))
  ),
  models: Schema.optionalKey(Schema.Array(TokenModel.mapFields(Struct.omit(["vendor"])))),
  jobs: Schema.optionalKey(
    JobProtocol.mapFields(Struct.assign({ models: Schema.NonEmptyArray(JobModel) }))
  )
}).annotate({ identifier: "Vendor" })
export type Vendor = typeof Vendor.Type

export const providerOf = ({ auth = "bearer", base, dialect, jobs, name, usage }: Vendor) =>
  ({
    name,
    auth,
    dialect: dialect ?? jobsDialect,
    ...(base === undefined ? {} : { base }),
    ...(usage === undefined ? {} : { usage }),
    ...(jobs === undefined ? {} : { jobs: Struct.omit(jobs, ["models"]) })
  }) satisfies CatalogProvider

/** The open routes of a vendor. A path outside its dialect opens no route; it is reported as a fault of the file. */
export const routesOf = ({ dialect, name, routes = [] }: Vendor): ReadonlyArray<OpenRoute> =>
  routes.flatMap((path) => {
    const route = dialect && dialectRoute(dialect, path)
    return route === undefined ? [] : [{ ...route, vendor: name, provider: name, path }]
  })

/** The models of its jobs, as catalog entries with the described bodies. */
export const jobModelsOf = ({ jobs, name }: Vendor): ReadonlyArray<CatalogEntry> =>
  (jobs?.models ?? []).map((model) => entryOf({ vendor: name, adapter: `jobs/${name}` }, model))

export const tokenModelsOf = ({ models = [], name }: Vendor): ReadonlyArray<TokenModel> =>
  models.map((model) => ({ ...model, vendor: name }))
