import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreditsFromString } from "../../domain/Credits.ts"
import { manageErrors as error } from "../ManageErrors.ts"

const Column = Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(200)))

/** The vendors whose bills can be read. */
export const BillVendor = Schema.Literals([
  "openai",
  "dashscope",
  "gemini",
  "fal",
  "replicate",
  "anthropic"
])

const margin = CreditsFromString.annotate({
  description: "Charged minus billed; a negative amount is a loss"
})

/** Lists have at most 1,000 items each; the counts include all items. */
const Reconciliation = Schema.Struct({
  vendor: Schema.String,
  from: Schema.String,
  to: Schema.String,
  lines: Schema.Int,
  billed: CreditsFromString,
  matched: Schema.Int,
  /** For the work on the bill whose charge is known. */
  margin: Schema.Struct({
    billed: CreditsFromString,
    charged: CreditsFromString,
    margin,
    /** Most expensive first. */
    models: Schema.Array(
      Schema.Struct({
        model: Schema.String,
        billed: CreditsFromString,
        charged: CreditsFromString,
        margin
      })
    ),
    /** The days of the bill on which there was any, the earliest first. */
    days: Schema.Array(
      Schema.Struct({
        day: Schema.String,
        billed: CreditsFromString,
        charged: CreditsFromString,
        margin
      })
    )
  }),
  bought_not_charged: Schema.Struct({
    count: Schema.Int,
    billed: CreditsFromString,
    data: Schema.Array(
      Schema.Struct({
        id: Schema.NullOr(Schema.String),
        model: Schema.String,
        day: Schema.String,
        billed: CreditsFromString,
        /** The task or call that was not charged for this item. Both are null if none is known. */
        task_id: Schema.NullOr(Schema.String),
        call_id: Schema.NullOr(Schema.String)
      })
    )
  }),
  charged_not_bought: Schema.Struct({
    count: Schema.Int,
    charged: CreditsFromString,
    data: Schema.Array(
      Schema.Struct({
        task_id: Schema.NullOr(Schema.String),
        call_id: Schema.NullOr(Schema.String),
        model: Schema.String,
        day: Schema.String,
        charged: CreditsFromString
      })
    )
  }),
  differences: Schema.Array(
    Schema.Struct({
      day: Schema.String,
      model: Schema.String,
      billed: CreditsFromString,
      charged: CreditsFromString,
      difference: CreditsFromString
    })
  )
}).annotate({ identifier: "Reconciliation" })

/** The operator's comparison with vendors' bills. docs/reference/reconciliation.md */
export class BillsApi extends HttpApiGroup.make("reconciliations").add(
  HttpApiEndpoint.post("reconcileBill", "/reconciliations", {
    payload: Schema.Struct({
      vendor: BillVendor,
      bill: Schema.String.annotate({ description: "The bill as CSV, in US dollars" }),
      columns: Schema.optionalKey(
        Schema.Struct({ id: Column, model: Column, date: Column, amount: Column })
      )
    }),
    success: Reconciliation,
    error
  })
) {}
