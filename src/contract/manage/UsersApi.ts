import { Schema, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Text } from "../../catalog/bodies/Fields.ts"
import { CreditsFromString, SentCredits } from "../../domain/Credits.ts"
import { addressPattern } from "../../domain/EmailAddress.ts"
import { UserId } from "../../domain/Ids.ts"
import { Timestamp } from "../../domain/task/Task.ts"
import { ChangesAccess } from "../Access.ts"
import { pageOf, pageQuery, searchQuery } from "../Lists.ts"
import { created, manageErrors as error } from "../ManageErrors.ts"
import { CreatedApiKey, Limit, NewApiKey } from "./ApiKeysApi.ts"
import { Threshold, WalletView } from "./WalletApi.ts"

const Name = Text.check(Schema.isNonEmpty(), Schema.isMaxCodePoints(200))
const Email = Text.check(
  Schema.isPattern(addressPattern, { expected: "an e-mail address" }),
  Schema.isMaxLength(320)
)

/** The message must never contain the password. */
const passwordFault = { message: "Expected a text of 8 to 1000 characters" }
export const Password = Schema.String.annotate(passwordFault).check(
  Schema.isMinLength(8, passwordFault),
  Schema.isMaxLength(1000, passwordFault)
)

export const User = Schema.Struct({
  id: UserId,
  email: Schema.String,
  name: Schema.NullOr(Schema.String),
  created_at: Timestamp,
  disabled: Schema.Boolean,
  /** The threshold of the wallet's balance alert. */
  trigger_threshold: CreditsFromString,
  /** `null` if the configured limit applies. */
  rate_limit_per_minute: Schema.NullOr(Schema.Int),
  concurrent_tasks: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "User" })

export const ListedUser = User.mapFields(
  Struct.assign({
    available_balance: CreditsFromString,
    settled_balance: CreditsFromString,
    /** Charged since the beginning of the UTC month. */
    spent_this_month: CreditsFromString
  })
).annotate({ identifier: "ListedUser" })

/** Absent members are unchanged. `null` restores the configured limit. */
export const UserChange = Schema.Struct({
  email: Schema.optionalKey(Email),
  name: Schema.optionalKey(Schema.NullOr(Name)),
  password: Schema.optionalKey(Schema.NullOr(Password)),
  disabled: Schema.optionalKey(Schema.Boolean),
  trigger_threshold: Schema.optionalKey(Threshold),
  rate_limit_per_minute: Schema.optionalKey(Schema.NullOr(Limit)),
  concurrent_tasks: Schema.optionalKey(Schema.NullOr(Limit))
}).annotate({ identifier: "UserChange" })

const PositiveAmount = SentCredits.check(
  Schema.isGreaterThanBigInt(0n, { message: "Expected an amount above zero" })
)

const NonZeroAmount = SentCredits.check(
  Schema.makeFilter<bigint>((amount) => amount !== 0n || "Expected an amount other than zero")
)

const IdempotencyKey = Schema.Struct({
  "idempotency-key": Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(255)))
})

/** The operator's endpoints. docs/reference/keys-and-limits.md#users */
export class UsersApi extends HttpApiGroup.make("users")
  .add(
    HttpApiEndpoint.post("createUser", "/users", {
      payload: Schema.Struct({
        email: Email,
        name: Schema.optionalKey(Schema.NullOr(Name)),
        password: Schema.optionalKey(Password)
      }),
      success: User.pipe(created),
      error
    }),
    HttpApiEndpoint.get("listUsers", "/users", {
      query: {
        ...pageQuery(UserId),
        ...searchQuery("An id, an address, or a part of an address or a name"),
        state: Schema.optionalKey(
          Schema.Literals(["active", "disabled", "alerted", "negative"]).annotate({
            description: "`alerted`: below the balance alert; `negative`: settled below zero"
          })
        ),
        sort: Schema.optionalKey(
          Schema.Literals(["newest", "balance", "spent"]).annotate({
            description:
              "`balance`: the lowest first; `spent`: who has spent most this month. Both have one page",
            default: "newest"
          })
        )
      },
      success: pageOf(ListedUser),
      error
    }),
    HttpApiEndpoint.get("getUser", "/users/:id", { params: { id: UserId }, success: User, error }),
    HttpApiEndpoint.patch("updateUser", "/users/:id", {
      params: { id: UserId },
      payload: UserChange,
      success: User,
      error
    }),
    HttpApiEndpoint.post("createUserApiKey", "/users/:id/api-keys", {
      params: { id: UserId },
      payload: NewApiKey,
      success: CreatedApiKey.pipe(created),
      error
    }).annotate(ChangesAccess, "keys"),
    HttpApiEndpoint.post("topUp", "/users/:id/top-ups", {
      params: { id: UserId },
      headers: IdempotencyKey,
      payload: Schema.Struct({
        amount: PositiveAmount,
        note: Schema.optionalKey(Schema.NullOr(Name))
      }),
      success: WalletView.pipe(created),
      error
    }),
    HttpApiEndpoint.post("adjust", "/users/:id/adjustments", {
      params: { id: UserId },
      headers: IdempotencyKey,
      payload: Schema.Struct({ amount: NonZeroAmount, note: Name }),
      success: WalletView.pipe(created),
      error
    })
  )
  .annotateMerge(
    OpenApi.annotations({ title: "Users", description: "The operator's endpoints" })
  ) {}
