import { Schema } from "effect"

const account = { id: Schema.String }

/**
 * A change to the state of an account that a response or a failure caused. All processes apply it, so that an account
 * is paused, cut off and used again everywhere. ADR 0178.
 */
export const AccountChange = Schema.Union([
  /** A failure that counts for the circuit of the model. */
  Schema.TaggedStruct("Failed", {
    ...account,
    model: Schema.String,
    user: Schema.NullOr(Schema.String),
    digest: Schema.String
  }),
  /** The vendor refuses the account. */
  Schema.TaggedStruct("Refused", { ...account, user: Schema.NullOr(Schema.String) }),
  Schema.TaggedStruct("Paused", {
    ...account,
    model: Schema.String,
    millis: Schema.Finite,
    isUsedUp: Schema.Boolean
  }),
  /** The operator's check failed; traffic continues. `status` is null if there was no response. */
  Schema.TaggedStruct("CheckFailed", {
    ...account,
    status: Schema.NullOr(Schema.Int),
    detail: Schema.String
  }),
  /**
   * The circuit of the model closes. Without a model the circuit of refusals closes, and a failed check is cleared.
   */
  Schema.TaggedStruct("Closed", { ...account, model: Schema.NullOr(Schema.String) })
])
export type AccountChange = typeof AccountChange.Type
