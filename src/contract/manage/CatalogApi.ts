import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Timestamp } from "../../domain/task/Task.ts"
import { manageErrors as error } from "../ManageErrors.ts"
import { PriceView, priceRowView } from "../Prices.ts"

const Hash = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/u, { expected: "a SHA-256 in hex" })
)

const rowName = {
  type: Schema.Literals(["media", "token", "vendor", "route", "alias"]),
  /** The vendor and path of the model or route. */
  id: Schema.String
}

const RowName = Schema.Struct(rowName).annotate({ identifier: "CatalogRowName" })

/** A price with its validity days. */
const Row = Schema.Struct({ ...rowName, price: PriceView, ...priceRowView }).annotate({
  identifier: "CatalogRow"
})

const CatalogView = Schema.Struct({
  hash: Hash,
  /** When all processes last adopted it; null if they never did. */
  adopted_at: Schema.NullOr(Timestamp),
  data: Schema.Array(Row)
}).annotate({ identifier: "Catalog" })

const Change = Schema.Struct({
  ...rowName,
  changes: Schema.Array(
    Schema.Struct({ pointer: Schema.String, before: Schema.Json, after: Schema.Json })
  )
}).annotate({ identifier: "CatalogChange" })

/** What a reload changes. `adopted` is false if it was only a preview, or if nothing changes. */
const Reloaded = Schema.Struct({
  hash: Hash,
  previous_hash: Hash,
  adopted: Schema.Boolean,
  difference: Schema.Struct({
    added: Schema.Array(RowName),
    removed: Schema.Array(RowName),
    changed: Schema.Array(Change)
  })
}).annotate({ identifier: "CatalogReload" })

/** The operator's endpoints for the catalog. docs/catalog.md#reload */
export class CatalogApi extends HttpApiGroup.make("catalog")
  .add(
    HttpApiEndpoint.get("getCatalog", "/catalog", {
      query: { hash: Schema.optionalKey(Hash), at: Schema.optionalKey(Timestamp) },
      success: CatalogView,
      error
    }),
    HttpApiEndpoint.post("reloadCatalog", "/catalog/reload", {
      query: { dry_run: Schema.optionalKey(Schema.Literals(["true", "false"])) },
      success: Reloaded,
      error
    })
  )
  .annotateMerge(
    OpenApi.annotations({ title: "Catalog", description: "The operator's endpoints" })
  ) {}
