import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreditsFromString, SentCredits } from "../../domain/Credits.ts"
import { UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { formatQuery, ofUser, pageOf, pageQuery, timeQuery, traceQuery } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

export const WalletView = Schema.Struct({
  available_balance: CreditsFromString,
  settled_balance: CreditsFromString,
  held_balance: CreditsFromString,
  trigger_threshold: CreditsFromString,
  currency: Schema.Literal("credits"),
  state: Schema.Literals(["NORMAL", "ALERTED"])
}).annotate({ identifier: "Wallet" })

export const Threshold = SentCredits.check(
  Schema.isGreaterThanOrEqualToBigInt(0n, { message: "Expected an amount that is not negative" })
)

export const WalletEntry = Schema.Struct({
  seq: Schema.Int,
  kind: Schema.Literals(["top_up", "adjustment", "hold", "capture", "release", "late_charge"]),
  amount: CreditsFromString,
  settled_after: CreditsFromString,
  held_after: CreditsFromString,
  task_id: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "WalletEntry" })

/** The number of an entry: a 64-bit integer in Postgres. */
export const EntryKey = Schema.BigIntFromString.check(
  Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 63n - 1n })
)

const Uuid = Schema.String.check(Schema.isUUID())

/** Filters by kind, by task or call, by time, trace and amount. `format=csv` returns a file. */
const EntryQuery = Schema.Struct({
  ...pageQuery(EntryKey),
  kind: Schema.optionalKey(WalletEntry.fields.kind),
  task_id: Schema.optionalKey(Uuid),
  ...timeQuery,
  ...traceQuery,
  min_amount: Schema.optionalKey(CreditsFromString),
  max_amount: Schema.optionalKey(CreditsFromString),
  ...formatQuery("entries")
})
export type EntryQuery = typeof EntryQuery.Type

/** `application/json`. The handler itself writes `text/csv`. */
const entryList = pageOf(WalletEntry)

/** A user's own wallet and ledger, and the operator's view of them. docs/reference/wallet.md#ledger */
export class WalletApi extends HttpApiGroup.make("wallet").add(
  HttpApiEndpoint.get("getWallet", "/wallet", { query: ofUser, success: WalletView, error }),
  HttpApiEndpoint.patch("updateWallet", "/wallet", {
    payload: Schema.Struct({ trigger_threshold: Threshold }),
    success: WalletView,
    error
  }),
  HttpApiEndpoint.get("listWalletEntries", "/wallet/entries", {
    query: EntryQuery.mapFields((fields) => ({ ...fields, ...ofUser })),
    success: entryList,
    error
  }),
  HttpApiEndpoint.get("getUserWallet", "/users/:id/wallet", {
    params: { id: UserId },
    success: WalletView,
    error
  }),
  HttpApiEndpoint.get("listUserWalletEntries", "/users/:id/wallet/entries", {
    params: { id: UserId },
    query: EntryQuery,
    success: entryList,
    error
  })
) {}
