import { DateTime, Duration, Effect, Schema } from "effect"
import { maybe } from "../OptionalField.ts"
import type { Candidate, SubmitRequest } from "../VendorClient.ts"
import { createTimeout } from "./DashScopeCalls.ts"
import type { Calls } from "./DashScopeCalls.ts"

const Listed = Schema.Struct({
  task_id: Schema.String,
  model_name: maybe(Schema.String),
  gmt_create: Schema.Finite
})

const Page = Schema.Struct({
  data: maybe(Schema.Array(Listed)),
  total_page: maybe(Schema.Finite)
})

/** The two clocks may differ by this much. */
const skewMillis = 10_000

/** The list's times are UTC+8, written without an offset (vendors.md A1). */
const listTime = (millis: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(millis + Duration.toMillis("8 hours")))
    .slice(0, 19)
    .replaceAll(/\D/gu, "")

const pagesMax = 10

/**
 * The tasks of this model that were created while the submit was under way. The list tells neither
 * prompt nor body, so the caller accepts one only if it is the only one that nobody else owns.
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
      const answer = yield* calls({ purpose: "ask", path: `/tasks/?${query}`, schema: Page })
      for (const { gmt_create: at, task_id: jobId } of answer.data ?? []) {
        if (at < from || at > until) continue
        found.push({ jobId, handle: { taskId: jobId, submittedAtMillis: at } })
      }
      if (page >= (answer.total_page ?? 1)) break
    }
    return found
  })
