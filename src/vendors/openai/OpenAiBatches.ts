import * as NodeStream from "@effect/platform-node/NodeStream"
import { Clock, Duration, Effect, Schema, Stream } from "effect"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { bodyFields, unsupportedModel } from "../BodyFields.ts"
import { jobFailed } from "../Faults.ts"
import { longList } from "../JobList.ts"
import { streamedForm } from "../Multipart.ts"
import { optionalField } from "../OptionalField.ts"
import {
  batchPollIntervalAtAge,
  handleReader,
  pollIntervalAtAge,
  submitTimeout
} from "../Polling.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  ListedJob,
  ListQuery,
  Progress,
  SubmitRequest,
  Submitted,
  UrlItem,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { apiOf, baseOf, rules } from "./OpenAiCalls.ts"

const readBody = bodyFields(BatchBody)

/**
 * The metadata key that names the task of a batch, so that a batch whose submit got no response is found in the list.
 */
export const taskKey = "gateway_task"

/** Uploaded files expire at the vendor after three days. Nothing else there uses them. */
const keptSeconds = 259_200

const uploadTimeout = Duration.minutes(30)

const Uploaded = Schema.Struct({ id: Schema.NonEmptyString })

const Batch = Schema.Struct({
  id: Schema.NonEmptyString,
  status: Schema.String,
  created_at: optionalField(Schema.Finite),
  output_file_id: optionalField(Schema.String),
  error_file_id: optionalField(Schema.String),
  request_counts: optionalField(
    Schema.Struct({ completed: optionalField(Schema.Int), failed: optionalField(Schema.Int) })
  ),
  errors: optionalField(
    Schema.Struct({
      data: optionalField(
        Schema.Array(
          Schema.Struct({
            code: optionalField(Schema.String),
            message: optionalField(Schema.String)
          })
        )
      )
    })
  ),
  metadata: optionalField(Schema.Record(Schema.String, Schema.Unknown))
})
type Batch = typeof Batch.Type

const Page = Schema.Struct({ data: Schema.Array(Batch), has_more: optionalField(Schema.Boolean) })

/** The most pages of the list that are read, 100 batches each, newest first. */
const pagesMax = 20

const Job = Schema.Struct({ id: Schema.NonEmptyString, submittedAtMillis: Schema.Finite })
const jobOf = handleReader(Job, "OpenAI")

/**
 * A batch at OpenAI. Its file is uploaded first, at no cost. The batch names the task in its metadata.
 * docs/reference/vendors.md#openai-batches
 */
export const make = (context: AdapterContext): VendorAccount => {
  const api = apiOf(context)
  const base = baseOf(context)
  const urlOf = (id: string) => `${base}/batches/${encodeURIComponent(id)}`
  return {
    accountId: context.accountId,
    prepare: makeUpload(api, `${base}/files`),
    submit: Effect.fn("OpenAiBatches.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { endpoint } = yield* readBody(request)
      if (request.prepared === undefined) return yield* unsupportedModel(request)
      const { id } = yield* callVendor(api, {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        url: `${base}/batches`,
        json: {
          input_file_id: request.prepared,
          endpoint,
          completion_window: "24h",
          metadata: { [taskKey]: request.taskId },
          output_expires_after: { anchor: "created_at", seconds: keptSeconds }
        },
        timeout: submitTimeout,
        schema: Uploaded
      })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      return {
        _tag: "Accepted",
        handle: { id, submittedAtMillis },
        pollAfter: pollIntervalAtAge(0)
      }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle) {
      const { id, submittedAtMillis } = yield* jobOf(handle)
      const batch = yield* callVendor(api, { purpose: "query", url: urlOf(id), schema: Batch })
      const age = (yield* Clock.currentTimeMillis) - submittedAtMillis
      return yield* progressOf(batch, `${base}/files`, age)
    }),
    cancel: Effect.fn("OpenAiBatches.cancel")(function* (
      handle: Handle
    ): Effect.fn.Return<CancelOutcome, VendorError> {
      const { id } = yield* jobOf(handle)
      const url = `${urlOf(id)}/cancel`
      yield* callVendor(api, { purpose: "query", method: "POST", url, json: {}, schema: Uploaded })
      return "Canceled"
    }),
    showsCancelled: true,
    list: makeList(api, base)
  }
}

/** Sends the file as it is read. Returns the vendor's file id. */
const makeUpload = (api: VendorApi, url: string) =>
  Effect.fn("OpenAiBatches.prepare")(function* (
    request: SubmitRequest
  ): Effect.fn.Return<string, VendorError> {
    const { file } = request
    if (file === undefined) return yield* unsupportedModel(request)
    const form = yield* streamedForm(
      [
        ["purpose", "batch"],
        ["expires_after[anchor]", "created_at"],
        ["expires_after[seconds]", String(keptSeconds)]
      ],
      { field: "file", name: "batch.jsonl", mime: "application/jsonl" }
    )
    const stream = Stream.succeed(form.head).pipe(
      Stream.concat(yield* file.open),
      Stream.concat(Stream.succeed(form.tail))
    )
    const body = yield* NodeStream.toReadable(stream)
    const length = form.head.length + file.bytes + form.tail.length
    const sent = callVendor(api, {
      purpose: "query",
      method: "POST",
      url,
      raw: { contentType: form.contentType, body },
      headers: { "content-length": String(length) },
      timeout: uploadTimeout,
      schema: Uploaded
    })
    const { id } = yield* Effect.ensuring(
      sent,
      Effect.sync(() => body.destroy())
    )
    return id
  })

const fileAt = (files: string, id: string | undefined): UrlItem | undefined =>
  id === undefined
    ? undefined
    : {
        _tag: "Url",
        url: `${files}/${encodeURIComponent(id)}/content`,
        mime: "application/jsonl",
        needsAuth: true
      }

const progressOf = (
  batch: Batch,
  files: string,
  ageMillis: number
): Effect.Effect<Progress, VendorError> => {
  const { completed = 0, failed = 0 } = batch.request_counts ?? {}
  const { status } = batch
  switch (status) {
    case "completed":
    case "expired":
    case "cancelled": {
      const output = fileAt(files, batch.output_file_id)
      const errors = fileAt(files, batch.error_file_id)
      return Effect.succeed({
        _tag: "Done",
        result: {
          items: [],
          batch: {
            status,
            completed,
            failed,
            ...(output === undefined ? {} : { output }),
            ...(errors === undefined ? {} : { errors })
          }
        }
      })
    }
    case "failed": {
      const [first] = batch.errors?.data ?? []
      return Effect.fail(jobFailed(rules, { code: first?.code, message: first?.message }))
    }
    default: {
      const isKnown = status === "in_progress" || status === "finalizing" || status === "cancelling"
      return Effect.succeed({
        _tag: "Running",
        pollAfter: batchPollIntervalAtAge(ageMillis),
        batch: { status: isKnown ? status : "validating", completed, failed }
      })
    }
  }
}

/** Lists batches. The list shows the metadata of each batch. */
const makeList = (api: VendorApi, base: string) =>
  Effect.fn("OpenAiBatches.list")(function* ({ from, until }: ListQuery) {
    const found: Array<ListedJob> = []
    let after = ""
    for (let page = 1; page <= pagesMax; page += 1) {
      const { data, has_more: hasMore } = yield* callVendor(api, {
        purpose: "query",
        url: `${base}/batches?limit=100${after}`,
        schema: Page
      })
      for (const batch of data) {
        const at = (batch.created_at ?? 0) * 1000
        // The vendor's times are whole seconds
        if (at >= from - 1000 && at <= until) found.push(listedOf(batch, at))
      }
      const last = data.at(-1)
      if (hasMore !== true || last === undefined) return found
      if ((last.created_at ?? 0) * 1000 < from - 1000) return found
      after = `&after=${encodeURIComponent(last.id)}`
    }
    return yield* longList
  })

const listedOf = ({ id, metadata }: Batch, createdAtMillis: number): ListedJob => ({
  jobId: id,
  createdAtMillis,
  handle: () => ({ id, submittedAtMillis: createdAtMillis }),
  compare: ({ taskId }) => (metadata?.[taskKey] === taskId ? "same" : "other")
})
