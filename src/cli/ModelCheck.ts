import { Effect, Layer } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import type { CatalogVersion } from "../catalog/CatalogContent.ts"
import { AppConfig } from "../config/Config.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { accountsWith, adapterIn } from "../vendors/Adapters.ts"
import { regionOf } from "../vendors/dashscope/DashScopeModels.ts"

/** The catalog's models that none of these accounts of one provider has. */
export const missingAt = (
  catalog: CatalogVersion,
  accounts: ReadonlyArray<AccountSetting>
): string => {
  const models = catalog.all.flatMap(({ adapter: name, upstreamModel }) => {
    const adapter = adapterIn(catalog, name)
    const isMissing =
      adapter !== undefined &&
      accounts.some(({ provider }) => provider === adapter.provider) &&
      accountsWith(adapter, upstreamModel, accounts).length === 0
    return isMissing ? [upstreamModel] : []
  })
  return [...new Set(models)].join(", ")
}

/**
 * Logs at startup which of the catalog's models each account lacks, and which no account has.
 * docs/reference/vendors.md#dashscope-regions
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const catalog = (yield* Catalog).current()
    const { accounts } = yield* AppConfig
    for (const account of accounts) {
      const missing = missingAt(catalog, [account])
      if (missing === "") continue
      const place = regionOf(account) ?? new URL(account.baseUrl).hostname
      yield* Effect.logWarning(
        `Account ${account.id} gets no jobs for ${missing}: ${place} does not have them`
      )
    }
    const unserved = missingAt(catalog, accounts)
    if (unserved === "") return
    yield* Effect.logError(
      `No account has ${unserved}: requests for them get 503, code 5003. Remedy: add an account that ` +
        "has them, or correct their upstreamModel in CATALOG_FILE"
    )
  })
)
