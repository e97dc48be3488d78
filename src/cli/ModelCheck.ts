import { Effect, Layer } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import type { CatalogEntry } from "../catalog/CatalogEntry.ts"
import { AppConfig } from "../config/Config.ts"
import type { AccountSetting } from "../domain/Provider.ts"
import { accountsWith, adapters } from "../vendors/Adapters.ts"
import { regionOf } from "../vendors/dashscope/DashScopeModels.ts"

/** The catalog's models that none of these accounts of one provider has. */
export const missingAt = (
  entries: ReadonlyArray<CatalogEntry>,
  accounts: ReadonlyArray<AccountSetting>
): string => {
  const models = entries
    .filter(({ adapter }) =>
      accounts.some(({ provider }) => provider === adapters[adapter].provider)
    )
    .filter(
      ({ adapter, upstreamModel }) =>
        accountsWith(adapters[adapter], upstreamModel, accounts).length === 0
    )
    .map(({ upstreamModel }) => upstreamModel)
  return [...new Set(models)].join(", ")
}

/**
 * Logs at startup which of the catalog's models an account lacks, and which no account has. docs/reference/vendors.md#dashscope-regions
 */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const { all } = (yield* Catalog).current()
    const { accounts } = yield* AppConfig
    for (const account of accounts) {
      const missing = missingAt(all, [account])
      if (missing === "") continue
      const place = regionOf(account) ?? new URL(account.baseUrl).hostname
      yield* Effect.logWarning(
        `Account ${account.id} gets no jobs for ${missing}: ${place} does not have them`
      )
    }
    const unserved = missingAt(all, accounts)
    if (unserved === "") return
    yield* Effect.logError(
      `No account has ${unserved}: creates of them get 503, code 5003. Remedy: add an account that ` +
        "has them, or correct their upstreamModel in CATALOG_FILE"
    )
  })
)
