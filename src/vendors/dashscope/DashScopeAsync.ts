import { Clock, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { emptyResult, jobFailed } from "../Faults.ts"
import { mediaTexts, urlOrDataUri } from "../MediaTexts.ts"
import type { MediumText } from "../MediaTexts.ts"
import { optionalField } from "../OptionalField.ts"
import { handleReader, pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  ResultItem,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import * as Bodies from "./DashScopeBodies.ts"
import * as Calls from "./DashScopeCalls.ts"
import { rules } from "./DashScopeFaults.ts"
import { makeList } from "./DashScopeList.ts"
import { inRegion } from "./DashScopeModels.ts"
import { rateOf, slotsOf } from "./DashScopeRates.ts"
import { urlOrUpload } from "./DashScopeUpload.ts"

const Created = Schema.Struct({ output: Schema.Struct({ task_id: Schema.NonEmptyString }) })

const Item = Schema.Struct({
  url: optionalField(Schema.String),
  code: optionalField(Schema.String),
  message: optionalField(Schema.String)
})

const Task = Schema.Struct({
  request_id: optionalField(Schema.String),
  output: Schema.Struct({
    task_status: Schema.String,
    video_url: optionalField(Schema.String),
    results: optionalField(Schema.Array(Item)),
    code: optionalField(Schema.String),
    message: optionalField(Schema.String)
  })
})
type Task = typeof Task.Type

const Job = Schema.Struct({ taskId: Schema.String, submittedAtMillis: Schema.Finite })
const jobOf = handleReader(Job, "DashScope")

/** Some of the vendor's servers may not know a new task for this long (unverified). */
const unknownToleratedMillis = 30_000

/** Keyframes, sound and the media of `video-edit-plus` are accepted as URLs only. */
const mediaForm = (label: string, upload: MediumText): MediumText =>
  label === "image-edit" || label === "image-to-video-spark"
    ? (medium) => (medium.mime.startsWith("image/") ? urlOrDataUri(medium) : upload(medium))
    : upload

/** A job that is submitted and polled. docs/reference/vendors.md#dashscope-tasks */
export const make = (context: AdapterContext): VendorAccount => {
  const { account, accountId } = context
  const calls = Calls.make(context)

  const submit = Effect.fn("DashScopeAsync.submit")(function* (
    ordered: SubmitRequest
  ): Effect.fn.Return<Submitted, VendorError> {
    const request = inRegion(account, ordered)
    const upload = urlOrUpload(context, calls, request.upstreamModel)
    const at = yield* mediaTexts(request, mediaForm(request.model, upload))
    const { body, path } = yield* Bodies.asyncBody(request, at)
    const isUploaded = request.media.some(({ pointer }) => at(pointer)?.startsWith("oss://"))
    const created = yield* calls({
      purpose: "submit",
      model: ordered.upstreamModel,
      method: "POST",
      path,
      json: body,
      headers: {
        "x-dashscope-async": "enable",
        ...Calls.inspection(context, request.body),
        ...(isUploaded ? { "x-dashscope-ossresourceresolve": "enable" } : {})
      },
      timeout: submitTimeout,
      schema: Created
    })
    const submittedAtMillis = yield* Clock.currentTimeMillis
    const handle = { taskId: created.output.task_id, submittedAtMillis }
    return { _tag: "Accepted", handle, pollAfter: pollIntervalAtAge(0) }
  })

  const poll = Effect.fn("DashScopeAsync.poll")(function* (handle: Handle) {
    const job = yield* jobOf(handle)
    const task = yield* calls({
      purpose: "query",
      path: `/tasks/${encodeURIComponent(job.taskId)}`,
      schema: Task
    })
    const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
    return yield* progressOf(task, age)
  })

  const cancel = Effect.fn("DashScopeAsync.cancel")(function* (handle: Handle) {
    const job = yield* jobOf(handle)
    return yield* calls({
      purpose: "query",
      method: "POST",
      path: `/tasks/${encodeURIComponent(job.taskId)}/cancel`,
      schema: Schema.Unknown
    }).pipe(
      Effect.as<CancelOutcome>("Canceled"),
      // Only a pending job can be cancelled
      Effect.catchIf(
        ({ vendorCode }) => vendorCode === "UnsupportedOperation",
        () => Effect.succeed<CancelOutcome>("TooLate")
      )
    )
  })

  return {
    accountId,
    submit,
    poll,
    cancel,
    list: makeList(account, calls),
    rateOf: rateOf(account),
    slotsOf: slotsOf(account)
  }
}

const progressOf = (
  { output, request_id: requestId }: Task,
  ageMillis: number
): Effect.Effect<Progress, VendorError> => {
  const running: Progress = { _tag: "Running", pollAfter: pollIntervalAtAge(ageMillis) }
  switch (output.task_status) {
    case "SUCCEEDED":
      return resultOf(output, requestId)
    case "FAILED":
      return Effect.fail(jobFailed(rules, { ...output, requestId }))
    case "CANCELED":
      return Effect.fail(jobFailed(rules, { message: "The job was cancelled upstream", requestId }))
    case "UNKNOWN":
      return ageMillis < unknownToleratedMillis ? Effect.succeed(running) : Effect.fail(unknownJob)
    // PENDING, RUNNING, SUSPENDED and unknown states
    default:
      return Effect.succeed(running)
  }
}

const unknownJob = new VendorError({
  class: "LOST",
  vendorCode: "UNKNOWN",
  message: "The upstream no longer knows the job"
})

/** If some of several images failed, the others are the result. */
const resultOf = (
  output: Task["output"],
  requestId: string | undefined
): Effect.Effect<Progress, VendorError> => {
  const items: ReadonlyArray<ResultItem> =
    output.video_url === undefined
      ? (output.results ?? []).flatMap(({ url }) =>
          url === undefined ? [] : [item(url, "image/png")]
        )
      : [item(output.video_url, "video/mp4")]
  if (items.length > 0) return Effect.succeed({ _tag: "Done", result: { items } })
  const first = Option.fromUndefinedOr(output.results?.[0])
  return Effect.fail(
    Option.match(first, {
      onNone: () => emptyResult({ requestId }),
      onSome: ({ code, message }) => jobFailed(rules, { code, message, requestId })
    })
  )
}

const item = (url: string, mime: string): ResultItem => ({
  _tag: "Url",
  url,
  mime,
  needsAuth: false
})
