import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { someOf, Text } from "../../catalog/bodies/Fields.ts"
import { CreditsFromString, SentCredits } from "../../domain/Credits.ts"
import { ApiKeyId } from "../../domain/Ids.ts"
import { keyGraceDays } from "../../domain/limits/Limits.ts"
import { Scope } from "../../domain/Scope.ts"
import { SpendReset } from "../../domain/SpendLimit.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { ChangesAccess } from "../Access.ts"
import { ofUser, pageOf, pageQuery } from "../Lists.ts"
import { created, manageErrors as error } from "../ManageErrors.ts"

const wholeNumber = (minimum: number, maximum: number) =>
  Schema.Int.check(
    Schema.isBetween(
      { minimum, maximum },
      { message: `Expected a whole number from ${minimum} to ${maximum}` }
    )
  )

/** A limit of a key or a user. */
export const Limit = wholeNumber(1, 1_000_000)

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
  last_used_at: Schema.NullOr(Timestamp),
  /** What the key may spend in a UTC calendar period; `null` if only the wallet limits it. */
  spend_limit: Schema.NullOr(CreditsFromString),
  /** The period. Without a spend limit nothing is counted, so this and the counts are `null`. */
  reset: Schema.NullOr(SpendReset),
  spent: Schema.NullOr(CreditsFromString),
  held: Schema.NullOr(CreditsFromString),
  remaining: Schema.NullOr(CreditsFromString),
  /** Also `null` if the limit never resets. */
  resets_at: Schema.NullOr(Timestamp),
  allowed_models: Schema.NullOr(Schema.Array(Schema.String)),
  rate_limit_per_minute: Schema.NullOr(Schema.Int),
  concurrent_tasks: Schema.NullOr(Schema.Int),
  /** Until when the secret from before the rotation is also valid. */
  old_key_expires_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "ApiKey" })

/** Only this response shows `key`. */
const RotatedApiKey = Schema.Struct({ ...ApiKey.fields, key: Schema.String }).annotate({
  identifier: "RotatedApiKey"
})

const Rotation = Schema.Struct({
  // ADR 0190
  grace_seconds: Schema.optionalKey(
    wholeNumber(0, keyGraceDays * 86_400).annotate({
      default: 0,
      description: "Seconds for which the old secret works too; 0 ends it at once"
    })
  )
}).annotate({ identifier: "ApiKeyRotation" })

/** Only this response shows `key`. */
export const CreatedApiKey = Schema.Struct({
  id: ApiKeyId,
  key: Schema.String,
  ...apiKeyFields
}).annotate({ identifier: "CreatedApiKey" })

const Name = Text.check(Schema.isNonEmpty(), Schema.isMaxCodePoints(200))

const limits = {
  spend_limit: Schema.optionalKey(
    Schema.NullOr(
      SentCredits.check(
        Schema.isGreaterThanOrEqualToBigInt(0n, {
          message: "Expected an amount that is not negative"
        })
      )
    )
  ),
  /** When the existing or new spend limit resets. Without this, a new limit never resets. */
  reset: Schema.optionalKey(SpendReset),
  allowed_models: Schema.optionalKey(
    Schema.NullOr(someOf(Text.check(Schema.isNonEmpty(), Schema.isMaxCodePoints(200))))
  ),
  rate_limit_per_minute: Schema.optionalKey(Schema.NullOr(Limit)),
  concurrent_tasks: Schema.optionalKey(Schema.NullOr(Limit)),
  expires_at: Schema.optionalKey(Schema.NullOr(Timestamp))
}

/** `null` removes a limit. Absent members are unchanged. */
export const ApiKeyChange = Schema.Struct({
  name: Schema.optionalKey(Name),
  ...limits
}).annotate({ identifier: "ApiKeyChange" })

/** A `null` or absent limit means no limit. */
export const NewApiKey = Schema.Struct({
  name: Name,
  scopes: Schema.optionalKey(someOf(Scope)),
  ...limits
}).annotate({ identifier: "NewApiKey" })

/** A user's own API keys. docs/reference/keys-and-limits.md#api-keys */
export class ApiKeysApi extends HttpApiGroup.make("apiKeys").add(
  HttpApiEndpoint.post("createApiKey", "/api-keys", {
    payload: NewApiKey,
    success: CreatedApiKey.pipe(created),
    error
  }).annotate(ChangesAccess, "keys"),
  HttpApiEndpoint.get("listApiKeys", "/api-keys", {
    query: { ...pageQuery(ApiKeyId), ...ofUser },
    success: pageOf(ApiKey),
    error
  }),
  HttpApiEndpoint.get("getApiKey", "/api-keys/:id", {
    params: { id: ApiKeyId },
    query: ofUser,
    success: ApiKey,
    error
  }),
  HttpApiEndpoint.patch("updateApiKey", "/api-keys/:id", {
    params: { id: ApiKeyId },
    payload: ApiKeyChange,
    success: ApiKey,
    error
  }).annotate(ChangesAccess, "keys"),
  HttpApiEndpoint.post("rotateApiKey", "/api-keys/:id/rotate", {
    params: { id: ApiKeyId },
    payload: [Rotation, HttpApiSchema.NoContent],
    success: RotatedApiKey,
    error
  })
    .annotate(ChangesAccess, "keys")
    .annotate(OpenApi.Transform, ({ requestBody, ...operation }) => ({
      ...operation,
      requestBody: { ...requestBody, required: false }
    })),
  HttpApiEndpoint.delete("revokeApiKey", "/api-keys/:id", {
    params: { id: ApiKeyId },
    success: HttpApiSchema.NoContent,
    error
  }).annotate(ChangesAccess, "keys")
) {}
