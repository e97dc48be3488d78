import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { CreditsFromString } from "../../domain/Credits.ts"
import { ApiKeyId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { costQuery, ofUser, pageOf, pageQuery, timeQuery, traceQuery } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"
import { SkippedModel } from "../TasksApi.ts"

export const CallId = Schema.String.check(Schema.isUUID())

/** The receipt of a metered passthrough call. ADR 0072. */
export const CallView = Schema.Struct({
  id: Schema.String,
  vendor: Schema.String,
  model: Schema.NullOr(Schema.String),
  route: Schema.String,
  outcome: Schema.Literals(["settled", "released", "lost"]),
  /**
   * Whether a late charge paid for it, because its hold had been released or it cost more than it held.
   * docs/reference/wallet.md#late-charges
   */
  charged_late: Schema.Boolean,
  http_status: Schema.NullOr(Schema.Int),
  held: CreditsFromString,
  cost: CreditsFromString,
  usage: Schema.NullOr(Schema.Record(Schema.String, Schema.Json)),
  /** The vendor account that was called; null for none or the simulator. */
  account_id: Schema.NullOr(Schema.String),
  /** For a stream: milliseconds from the beginning of the call to the first piece of output. */
  time_to_first_token_ms: Schema.NullOr(Schema.Int),
  sandbox: Schema.Boolean,
  /** Present if the client requested an alias: its name. */
  alias: Schema.optionalKey(Schema.String),
  /** Present for an alias: the models that were skipped, and why. docs/reference/aliases.md#reasons */
  skipped: Schema.optionalKey(Schema.Array(SkippedModel)),
  /** The hash of the catalog that priced it. */
  catalog: Schema.NullOr(Schema.String),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  ended_at: Timestamp
}).annotate({ identifier: "Call" })

const ContentSide = Schema.Struct({
  content_type: Schema.NullOr(Schema.String),
  /** The beginning of the body. Media and credentials are replaced. */
  text: Schema.String,
  truncated: Schema.Boolean,
  /** The size of the whole body. */
  bytes: Schema.Int
}).annotate({ identifier: "CallContentSide" })

/** What a call sent and received. docs/reference/passthrough.md#requests-and-responses */
export const CallContentView = Schema.Struct({
  call_id: Schema.String,
  /** The path of the request with its query, without the client's credentials. */
  path: Schema.String,
  /** Null if the request was a form with a file. */
  request: Schema.NullOr(ContentSide),
  /** Null if nothing was relayed. */
  response: Schema.NullOr(ContentSide)
}).annotate({ identifier: "CallContent" })

/** The settings of a user. */
export const Settings = Schema.Struct({
  /** Whether requests and responses of calls are kept. */
  keep_calls: Schema.Boolean
}).annotate({ identifier: "Settings" })

/** A user's own metered calls, newest first. */
export class CallsApi extends HttpApiGroup.make("calls").add(
  HttpApiEndpoint.get("listCalls", "/calls", {
    query: {
      ...pageQuery(CallId),
      ...ofUser,
      ...timeQuery,
      ...traceQuery,
      ...costQuery,
      outcome: Schema.optionalKey(CallView.fields.outcome),
      api_key_id: Schema.optionalKey(ApiKeyId),
      vendor: Schema.optionalKey(Text.check(Schema.isNonEmpty())),
      model: Schema.optionalKey(Text.check(Schema.isNonEmpty()))
    },
    success: pageOf(CallView),
    error
  }),
  HttpApiEndpoint.get("getCall", "/calls/:id", {
    params: { id: CallId },
    query: ofUser,
    success: CallView,
    error
  }),
  HttpApiEndpoint.get("getCallContent", "/calls/:id/content", {
    params: { id: CallId },
    query: ofUser,
    success: CallContentView,
    error
  }),
  HttpApiEndpoint.get("getSettings", "/settings", { query: ofUser, success: Settings, error }),
  HttpApiEndpoint.patch("updateSettings", "/settings", {
    payload: Settings,
    success: Settings,
    error
  })
) {}
