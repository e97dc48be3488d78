import { Effect, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { blocking } from "../Blocking.ts"
import { empty } from "../Faults.ts"
import { mediaTexts, urlOrDataUri } from "../MediaTexts.ts"
import { maybe } from "../OptionalField.ts"
import type { ResultItem, SubmitRequest, Submitted, VendorAccount } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import * as Bodies from "./DashScopeBodies.ts"
import * as Calls from "./DashScopeCalls.ts"
import { rateOf, slotsOf } from "./DashScopeRates.ts"

const Generated = Schema.Struct({
  request_id: maybe(Schema.String),
  output: Schema.Struct({
    choices: Schema.Array(
      Schema.Struct({
        message: Schema.Struct({
          content: Schema.Array(Schema.Struct({ image: maybe(Schema.String) }))
        })
      })
    )
  })
})

/** F2 of vendors.md C: the models that answer with the result. The async header must be absent. */
export const make = (line: AdapterContext): VendorAccount => {
  const { account, accountId } = line
  const calls = Calls.make(line)
  return {
    accountId,
    submit: Effect.fn("DashScopeSync.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { body, path } = yield* Bodies.syncBody(
        request,
        yield* mediaTexts(request, urlOrDataUri)
      )
      const { output, request_id: requestId } = yield* calls({
        purpose: "submit",
        method: "POST",
        path,
        json: body,
        headers: Calls.inspection(line, request.body),
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
        : yield* empty(requestId === undefined ? {} : { requestId })
    }),
    ...blocking,
    rateOf: rateOf(account.id),
    slotsOf: slotsOf(account.id)
  }
}
