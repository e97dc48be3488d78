import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreditsFromString } from "../domain/Credits.ts"
import { Timestamp } from "../domain/Task.ts"
import { manageErrors as error } from "./ManageErrors.ts"
import { pageOf, PageQuery } from "./Paging.ts"

export const WalletView = Schema.Struct({
  available_balance: CreditsFromString,
  settled_balance: CreditsFromString,
  held_balance: CreditsFromString,
  trigger_threshold: CreditsFromString,
  currency: Schema.Literal("credits"),
  state: Schema.Literals(["NORMAL", "ALERTED"])
}).annotate({ identifier: "Wallet" })

const Threshold = CreditsFromString.check(
  Schema.isGreaterThanOrEqualToBigInt(0n, { expected: "an amount that is not negative" })
)

export const WalletEntry = Schema.Struct({
  seq: Schema.Int,
  kind: Schema.Literals(["top_up", "adjustment", "hold", "capture", "release"]),
  amount: CreditsFromString,
  settled_after: CreditsFromString,
  held_after: CreditsFromString,
  task_id: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "WalletEntry" })

/** A user's own wallet and ledger. Contract 3. */
export class WalletApi extends HttpApiGroup.make("wallet").add(
  HttpApiEndpoint.get("getWallet", "/wallet", { success: WalletView, error }),
  HttpApiEndpoint.patch("updateWallet", "/wallet", {
    payload: Schema.Struct({ trigger_threshold: Threshold }),
    success: WalletView,
    error
  }),
  HttpApiEndpoint.get("listWalletEntries", "/wallet/entries", {
    query: PageQuery,
    success: pageOf(WalletEntry),
    error
  })
) {}
