import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { CreditsFromString } from "../../domain/Credits.ts"
import { manageErrors as error } from "../ManageErrors.ts"

const Column = Schema.optionalKey(Schema.NonEmptyString.check(Schema.isMaxLength(200)))

/** Whose bills are read. */
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

/** Amounts of at most 1,000 items each; the counts are of all. */
const Reconciliation = Schema.Struct({
  vendor: Schema.String,
  from: Schema.String,
  to: Schema.String,
  lines: Schema.Int,
  billed: CreditsFromString,
  matched: Schema.Int,
  /** Of the work on the bill whose charge is known. */
  margin: Schema.Struct({
    billed: CreditsFromString,
    charged: CreditsFromString,
    margin,
    /** The most expensive first. */
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
        /** The task or the call that charged nothing for it; both null: none is known. */
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

/** Comparison with vendors' bills, by the operator. docs/reference/reconciliation.md */
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
