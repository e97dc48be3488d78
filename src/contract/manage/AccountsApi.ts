import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { ExactCreditsFromString } from "../../domain/Credits.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { manageErrors as error } from "../ManageErrors.ts"

const Circuit = Schema.Literals(["closed", "half_open", "open"])

/** The id of an account: its provider with its name, or a fingerprint of its key. Not a secret. */
const AccountId = Text.check(Schema.isNonEmpty(), Schema.isMaxLength(200))

/** A vendor account, as known to the process that responds. */
const AccountView = Schema.Struct({
  id: Schema.String,
  provider: Schema.String,
  base_url: Schema.String,
  weight: Schema.Int,
  /** False if it was removed from the configuration; its tasks are still finished. */
  configured: Schema.Boolean,
  /** `draining`: no process gives it new work. */
  status: Schema.Literals(["active", "draining"]),
  draining_since: Schema.NullOr(Timestamp),
  /** `unavailable`: it was refused, or its check failed. `degraded`: one of its models is paused or cut off. */
  health: Schema.Literals(["healthy", "degraded", "unavailable"]),
  /** The worst circuit of its models. */
  circuit: Circuit,
  paused_seconds: Schema.Finite,
  /** Models that had a pause or a failure. */
  models: Schema.Array(
    Schema.Struct({ model: Schema.String, circuit: Circuit, paused_seconds: Schema.Finite })
  ),
  /** Unfinished tasks of all processes. `limit` is the configured limit. */
  slots: Schema.Struct({
    limit: Schema.NullOr(Schema.Int),
    held: Schema.Int,
    waiting: Schema.Int
  }),
  /** For tasks (`submits`, `polls`) per minute; for calls as reported by the vendor. */
  rate: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      model: Schema.NullOr(Schema.String),
      limit: Schema.Finite,
      used: Schema.Finite,
      resets_at: Schema.NullOr(Timestamp)
    })
  ),
  /** The charges of today (UTC) for its tasks and calls. */
  spend_today: ExactCreditsFromString,
  /** The latest refusal of the service's own account. */
  last_fault: Schema.NullOr(
    Schema.Struct({
      at: Timestamp,
      model: Schema.String,
      http_status: Schema.NullOr(Schema.Int),
      remedy: Schema.String
    })
  ),
  /** The last check, if it failed and nothing has succeeded since then. */
  failed_check: Schema.NullOr(
    Schema.Struct({
      at: Timestamp,
      http_status: Schema.NullOr(Schema.Int),
      detail: Schema.String
    })
  )
}).annotate({ identifier: "VendorAccount" })

const CheckView = Schema.Struct({
  ok: Schema.Boolean,
  /** Null if there was no response. */
  http_status: Schema.NullOr(Schema.Int),
  duration_ms: Schema.Int,
  detail: Schema.NullOr(Schema.String)
}).annotate({ identifier: "VendorAccountCheck" })

const params = { id: AccountId }

/** The operator's endpoints for vendor accounts. docs/reference/vendors.md#draining-an-account */
export class AccountsApi extends HttpApiGroup.make("accounts")
  .add(
    HttpApiEndpoint.get("listAccounts", "/accounts", {
      success: Schema.Struct({
        data: Schema.Array(AccountView),
        next_cursor: Schema.Null
      }),
      error
    }),
    HttpApiEndpoint.post("drainAccount", "/accounts/:id/drain", {
      params,
      success: AccountView,
      error
    }),
    HttpApiEndpoint.post("resumeAccount", "/accounts/:id/resume", {
      params,
      success: AccountView,
      error
    }),
    HttpApiEndpoint.post("checkAccount", "/accounts/:id/check", {
      params,
      success: CheckView,
      error
    })
  )
  .annotateMerge(
    OpenApi.annotations({ title: "Vendor accounts", description: "The operator's endpoints" })
  ) {}
