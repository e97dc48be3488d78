import { Clock, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { empty, jobFailed } from "../Faults.ts"
import { mediaTexts, urlOrDataUri } from "../MediaTexts.ts"
import type { MediumText } from "../MediaTexts.ts"
import { maybe } from "../OptionalField.ts"
import { waitAtAge } from "../Polling.ts"
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
import { makeReconcile } from "./DashScopeList.ts"
import { rateOf, slotsOf } from "./DashScopeRates.ts"
import { urlOrUpload } from "./DashScopeUpload.ts"

const Created = Schema.Struct({ output: Schema.Struct({ task_id: Schema.NonEmptyString }) })

const Item = Schema.Struct({
  url: maybe(Schema.String),
  code: maybe(Schema.String),
  message: maybe(Schema.String)
})

const Task = Schema.Struct({
  request_id: maybe(Schema.String),
  output: Schema.Struct({
    task_status: Schema.String,
    video_url: maybe(Schema.String),
    results: maybe(Schema.Array(Item)),
    code: maybe(Schema.String),
    message: maybe(Schema.String)
  })
})
type Task = typeof Task.Type

const Job = Schema.Struct({ taskId: Schema.String, submittedAtMillis: Schema.Finite })
const decodeJob = Schema.decodeUnknownOption(Job)

/** A new task may not be known everywhere at once: for so long UNKNOWN is not believed. */
const unknownToleratedMillis = 30_000

/** How each label's media are given. Keyframes, sound and clips are taken as URLs alone. */
const mediaForm = (label: string, upload: MediumText): MediumText =>
  label === "image-edit" || label === "image-to-video-spark"
    ? (medium) => (medium.mime.startsWith("image/") ? urlOrDataUri(medium) : upload(medium))
    : upload

/** F1 of vendors.md C: a task that runs at DashScope by itself and is asked for. */
export const make = (line: AdapterContext): VendorAccount => {
  const { account, accountId } = line
  const calls = Calls.make(line)

  const submit = Effect.fn("DashScopeAsync.submit")(function* (
    request: SubmitRequest
  ): Effect.fn.Return<Submitted, VendorError> {
    const upload = urlOrUpload(line.http, calls, request.upstreamModel)
    const at = yield* mediaTexts(request, mediaForm(request.model, upload))
    const { body, path } = yield* Bodies.asyncBody(request, at)
    const isUploaded = request.media.some(({ pointer }) => at(pointer)?.startsWith("oss://"))
    const created = yield* calls({
      purpose: "submit",
      method: "POST",
      path,
      json: body,
      headers: {
        "x-dashscope-async": "enable",
        ...Calls.inspection(line, request.body),
        ...(isUploaded ? { "x-dashscope-ossresourceresolve": "enable" } : {})
      },
      timeout: Calls.createTimeout,
      schema: Created
    })
    const submittedAtMillis = yield* Clock.currentTimeMillis
    const handle = { taskId: created.output.task_id, submittedAtMillis }
    return { _tag: "Accepted", handle, pollAfter: waitAtAge(0) }
  })

  const poll = Effect.fn("DashScopeAsync.poll")(function* (handle: Handle) {
    const job = yield* jobOf(handle)
    const task = yield* calls({
      purpose: "ask",
      path: `/tasks/${encodeURIComponent(job.taskId)}`,
      schema: Task
    })
    const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
    return yield* progressOf(task, age)
  })

  const cancel = Effect.fn("DashScopeAsync.cancel")(function* (handle: Handle) {
    const job = yield* jobOf(handle)
    return yield* calls({
      purpose: "ask",
      method: "POST",
      path: `/tasks/${encodeURIComponent(job.taskId)}/cancel`,
      schema: Schema.Unknown
    }).pipe(
      Effect.as<CancelOutcome>("Canceled"),
      // Only a task that still waits can be cancelled
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
    reconcile: makeReconcile(calls),
    canList: true,
    rateOf: rateOf(account.id),
    slotsOf: slotsOf(account.id)
  }
}

const jobOf = (handle: Handle) =>
  Effect.mapError(
    Effect.fromOption(decodeJob(handle)),
    () => new VendorError({ class: "LOST", message: "The job's handle is not DashScope's" })
  )

/** vendors.md B, Poll mapping. */
const progressOf = (
  { output, request_id: requestId }: Task,
  ageMillis: number
): Effect.Effect<Progress, VendorError> => {
  const running: Progress = { _tag: "Running", pollAfter: waitAtAge(ageMillis) }
  switch (output.task_status) {
    case "SUCCEEDED":
      return resultOf(output, requestId)
    case "FAILED":
      return Effect.fail(jobFailed(rules, { ...output, requestId }))
    case "CANCELED":
      return Effect.fail(jobFailed(rules, { message: "The job was cancelled upstream", requestId }))
    case "UNKNOWN":
      return ageMillis < unknownToleratedMillis ? Effect.succeed(running) : Effect.fail(forgotten)
    // PENDING, RUNNING, SUSPENDED, and whatever the vendor may invent: not over
    default:
      return Effect.succeed(running)
  }
}

const forgotten = new VendorError({
  class: "LOST",
  vendorCode: "UNKNOWN",
  message: "The upstream does not know the job any more"
})

/** Some pictures of several may fail: the others are the result (vendors.md A1). */
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
      onNone: () => empty({ requestId }),
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
