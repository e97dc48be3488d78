import { DateTime, Duration, Effect, Schema } from "effect"
import type { AccountSetting } from "../../domain/Provider.ts"
import { longList, promptIn } from "../JobList.ts"
import { optionalField } from "../OptionalField.ts"
import type { ListedJob, ListQuery } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import type { Calls } from "./DashScopeCalls.ts"
import { inRegion } from "./DashScopeModels.ts"

const Listed = Schema.Struct({
  task_id: Schema.String,
  model_name: optionalField(Schema.String),
  status: optionalField(Schema.String),
  gmt_create: Schema.Finite
})
type Listed = typeof Listed.Type

const Page = Schema.Struct({
  data: optionalField(Schema.Array(Listed)),
  total_page: optionalField(Schema.Finite)
})

const Prompt = Schema.Struct({ orig_prompt: optionalField(Schema.String) })

/** A job's record. A succeeded job shows its prompt next to its video, or in each of its images. */
const Task = Schema.Struct({
  output: Schema.Struct({
    task_status: Schema.String,
    ...Prompt.fields,
    results: optionalField(Schema.Array(Prompt))
  })
})

/** Formats a time for the list, which uses UTC+8 without an offset. docs/reference/vendors.md#dashscope-lists */
const listTime = (millis: number): string =>
  DateTime.formatIso(DateTime.makeUnsafe(millis + Duration.toMillis("8 hours")))
    .slice(0, 19)
    .replaceAll(/\D/gu, "")

/** The most pages that are read, 100 jobs each. */
const pagesMax = 20

/**
 * The most prompts that are cached. The vendor forgets a job after a day, so this is enough to read each record once.
 */
const promptsMax = 1000

/** The list has no prompts. A job's own record has one once the job has succeeded. */
export const makeList = (account: AccountSetting, calls: Calls) => {
  const prompts = new Map<string, string>()

  const jobOf = (listed: Listed & { readonly model: string }): ListedJob => {
    const { gmt_create: at, model, status, task_id: jobId } = listed
    const prompt = prompts.get(jobId)
    return {
      jobId,
      createdAtMillis: at,
      handle: () => ({ taskId: jobId, submittedAtMillis: at }),
      compare: (request) => {
        if (inRegion(account, request).upstreamModel !== model) return "other"
        if (prompt === undefined) return "open"
        return promptIn(request)?.trim() === prompt.trim() ? "same" : "other"
      },
      ...(prompt !== undefined || hasEndedBadly(status) ? {} : { read: readJob(listed) })
    }
  }

  const readJob = Effect.fn("DashScope.readJob")(function* (
    listed: Listed & { readonly model: string }
  ): Effect.fn.Return<ListedJob, VendorError> {
    const path = `/tasks/${encodeURIComponent(listed.task_id)}`
    const { output } = yield* calls({ purpose: "query", path, schema: Task })
    const prompt =
      output.orig_prompt ?? output.results?.find((it) => it.orig_prompt !== undefined)?.orig_prompt
    if (prompt !== undefined) {
      const [oldest] = prompts.keys()
      if (oldest !== undefined && prompts.size >= promptsMax) prompts.delete(oldest)
      prompts.set(listed.task_id, prompt)
    }
    // A succeeded job without a prompt will never show one
    const isOver = output.task_status === "SUCCEEDED" || hasEndedBadly(output.task_status)
    const { read, ...job } = jobOf({ ...listed, status: output.task_status })
    return isOver || read === undefined ? job : { ...job, read }
  })

  const listModel = Effect.fnUntraced(function* (
    model: string,
    { from, until }: Omit<ListQuery, "requests">
  ) {
    const found: Array<ListedJob> = []
    for (let page = 1; page <= pagesMax; page += 1) {
      const query = new URLSearchParams({
        start_time: listTime(from),
        end_time: listTime(until + 1000),
        model_name: model,
        page_no: String(page),
        page_size: "100"
      })
      const response = yield* calls({ purpose: "query", path: `/tasks/?${query}`, schema: Page })
      for (const listed of response.data ?? []) {
        const { gmt_create: at, model_name: name = model } = listed
        if (at >= from && at <= until) found.push(jobOf({ ...listed, model: name }))
      }
      if (page >= (response.total_page ?? 1)) return found
    }
    return yield* longList
  })

  return Effect.fn("DashScope.list")(function* ({ requests, ...times }: ListQuery) {
    const models = new Set(requests.map((it) => inRegion(account, it).upstreamModel))
    const lists = yield* Effect.forEach(models, (model) => listModel(model, times))
    return lists.flat()
  })
}

const hasEndedBadly = (status: string | undefined): boolean =>
  status === "FAILED" || status === "CANCELED" || status === "UNKNOWN"
