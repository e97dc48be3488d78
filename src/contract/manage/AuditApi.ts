import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { AuditId, UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { formatQuery, pageOf, pageQuery, timeQuery } from "../Lists.ts"
import { manageErrors as error } from "../ManageErrors.ts"

const Actor = Schema.Struct({
  type: Schema.Literals(["operator", "api_key", "session", "access_token"]),
  /** The key, the session or the subject of the access token; `null` for the operator's token. */
  id: Schema.NullOr(Schema.String),
  user_id: Schema.NullOr(UserId),
  /** Users do not see the operator's address. */
  ip_address: Schema.NullOr(Schema.String)
}).annotate({ identifier: "AuditActor" })

export const AuditEntry = Schema.Struct({
  id: AuditId,
  /** The operation, by its id in this document. */
  type: Schema.String,
  actor: Actor,
  user_id: Schema.NullOr(UserId),
  resource_id: Schema.NullOr(Schema.String),
  /** The fields of the request. Secrets and free texts are replaced by `[hidden]`. */
  changes: Schema.Record(Schema.String, Schema.Json),
  trace_id: Schema.NullOr(Schema.String),
  created_at: Timestamp
}).annotate({ identifier: "AuditEntry" })

const Filter = Text.check(Schema.isNonEmpty(), Schema.isMaxLength(100))

const AuditQuery = Schema.Struct({
  ...pageQuery(AuditId),
  user_id: Schema.optionalKey(UserId.annotate({ description: "Only of this user" })),
  type: Schema.optionalKey(Filter),
  actor_id: Schema.optionalKey(Filter),
  resource_id: Schema.optionalKey(Filter),
  ...timeQuery,
  ...formatQuery("entries")
})

/** The audit log: a user's own entries, or all entries for the operator. docs/reference/audit.md */
export class AuditApi extends HttpApiGroup.make("audit").add(
  HttpApiEndpoint.get("listAuditLog", "/audit-log", {
    query: AuditQuery,
    success: pageOf(AuditEntry),
    error
  })
) {}
