import { DateTime, Duration, Effect, Schema } from "effect"
import { optionalField } from "../OptionalField.ts"
import type { Candidate, SubmitRequest } from "../VendorClient.ts"
import { createTimeout } from "./DashScopeCalls.ts"
import type { Calls } from "./DashScopeCalls.ts"

const Listed = Schema.Struct({
  task_id: Schema.String,
  model_name: optionalField(Schema.String),
  gmt_create: Schema.Finite
})

const Page = Schema.Struct({
  data: optionalField(Schema.Array(Listed)),
  total_page: optionalField(Schema.Finite)
})

/** Clock skew between the gateway and the vendor. */
const skewMillis = 10_000

/** Times of the list are UTC+8 without an offset. docs/reference/vendors.md#dashscope-lists */
const listTime = (millis: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(millis + Duration.toMillis("8 hours")))
    .slice(0, 19)
    .replaceAll(/\D/gu, "")

const pagesMax = 10

/**
 * The jobs of this model that were created while the submit was under way. The list has neither prompt
 * nor body, so the caller accepts a job only if it is the only one without another owner (ADR 0081).
 */
export const makeReconcile = (calls: Calls) =>
  Effect.fn("DashScope.reconcile")(function* (request: SubmitRequest, startedAtMillis: number) {
    const from = startedAtMillis - skewMillis
    const until = startedAtMillis + Duration.toMillis(createTimeout) + skewMillis
    const found: Array<Candidate> = []
    for (let page = 1; page <= pagesMax; page += 1) {
      const query = new URLSearchParams({
        start_time: listTime(from),
        end_time: listTime(until + 1000),
        model_name: request.upstreamModel,
        page_no: String(page),
        page_size: "100"
      })
      const response = yield* calls({ purpose: "query", path: `/tasks/?${query}`, schema: Page })
      for (const { gmt_create: at, task_id: jobId } of response.data ?? []) {
        if (at < from || at > until) continue
        found.push({ jobId, handle: { taskId: jobId, submittedAtMillis: at } })
      }
      if (page >= (response.total_page ?? 1)) break
    }
    return found
  })
