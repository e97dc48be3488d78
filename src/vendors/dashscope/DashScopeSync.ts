import { Effect, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { blocking } from "../Blocking.ts"
import { emptyResult } from "../Faults.ts"
import { mediaTexts, urlOrDataUri } from "../MediaTexts.ts"
import { optionalField } from "../OptionalField.ts"
import type { ResultItem, SubmitRequest, Submitted, VendorAccount } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import * as Bodies from "./DashScopeBodies.ts"
import * as Calls from "./DashScopeCalls.ts"
import { inRegion } from "./DashScopeModels.ts"
import { rateOf, slotsOf } from "./DashScopeRates.ts"

const Generated = Schema.Struct({
  request_id: optionalField(Schema.String),
  output: Schema.Struct({
    choices: Schema.Array(
      Schema.Struct({
        message: Schema.Struct({
          content: Schema.Array(Schema.Struct({ image: optionalField(Schema.String) }))
        })
      })
    )
  })
})

/** The fields of a body that are sent. */
export const taken: ReadonlySet<string> = new Set([
  "prompt",
  "images",
  "negative_prompt",
  "size",
  "n",
  "prompt_extend",
  "seed"
])

/** Blocking models. Their requests must not have the async header. docs/reference/vendors.md#dashscope-wire-protocol */
export const make = (context: AdapterContext): VendorAccount => {
  const { account, accountId } = context
  const calls = Calls.make(context)
  return {
    accountId,
    submit: Effect.fn("DashScopeSync.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { body, path } = yield* Bodies.syncBody(
        inRegion(account, request),
        yield* mediaTexts(request, urlOrDataUri)
      )
      const { output, request_id: requestId } = yield* calls({
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        path,
        json: body,
        headers: Calls.inspection(context, request.body),
        timeout: Calls.blockingTimeout,
        schema: Generated
      })
      const items = output.choices
        .flatMap(({ message }) => message.content)
        .flatMap(({ image }): ReadonlyArray<ResultItem> =>
          image === undefined
            ? []
            : [{ _tag: "Url", url: image, mime: "image/png", needsAuth: false }]
        )
      return items.length > 0
        ? { _tag: "Done", result: { items } }
        : yield* emptyResult(requestId === undefined ? {} : { requestId })
    }),
    ...blocking,
    rateOf: rateOf(account),
    slotsOf: slotsOf(account)
  }
}
