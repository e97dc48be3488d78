import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { someOf, Text } from "../../catalog/bodies/Fields.ts"
import { ApiKeyId } from "../../domain/Ids.ts"
import { Scope } from "../../domain/Scope.ts"
import { Timestamp } from "../../domain/Task.ts"
import { created, manageErrors as error } from "./ManageErrors.ts"
import { ofUser, pageOf, pageQuery } from "./Paging.ts"

const apiKeyFields = {
  preview: Schema.String,
  name: Schema.String,
  scopes: Schema.Array(Scope),
  created_at: Timestamp,
  expires_at: Schema.NullOr(Timestamp)
}

export const ApiKey = Schema.Struct({
  id: ApiKeyId,
  ...apiKeyFields,
  last_used_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "ApiKey" })

/** Only this response shows `key`. */
export const CreatedApiKey = Schema.Struct({
  id: ApiKeyId,
  key: Schema.String,
  ...apiKeyFields
}).annotate({ identifier: "CreatedApiKey" })

export const NewApiKey = Schema.Struct({
  name: Text.check(Schema.isNonEmpty(), Schema.isMaxCodePoints(200)),
  scopes: Schema.optionalKey(someOf(Scope)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp))
}).annotate({ identifier: "NewApiKey" })

/** A user's own API keys. docs/reference/keys-and-limits.md#api-keys */
export class ApiKeysApi extends HttpApiGroup.make("apiKeys").add(
  HttpApiEndpoint.post("createApiKey", "/api-keys", {
    payload: NewApiKey,
    success: CreatedApiKey.pipe(created),
    error
  }),
  HttpApiEndpoint.get("listApiKeys", "/api-keys", {
    query: { ...pageQuery(ApiKeyId), ...ofUser },
    success: pageOf(ApiKey),
    error
  }),
  HttpApiEndpoint.delete("revokeApiKey", "/api-keys/:id", {
    params: { id: ApiKeyId },
    success: HttpApiSchema.NoContent,
    error
  })
) {}
