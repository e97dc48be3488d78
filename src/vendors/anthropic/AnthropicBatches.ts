import * as NodeStream from "@effect/platform-node/NodeStream"
import { Clock, Duration, Effect, Option, Schema, Stream } from "effect"
import { createHash } from "node:crypto"
import { BatchBody } from "../../catalog/bodies/BatchBody.ts"
import { memberOf } from "../../domain/json/JsonBytes.ts"
import { batchLineBytesMax, batchMarkCharacters } from "../../domain/limits/FileLimits.ts"
import { LineSplitter } from "../../domain/Lines.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { bodyFields, unsupportedModel } from "../BodyFields.ts"
import { longList } from "../JobList.ts"
import { optionalField } from "../OptionalField.ts"
import { batchPollIntervalAtAge, handleReader, pollIntervalAtAge } from "../Polling.ts"
import { callVendor, send } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  ListedJob,
  ListQuery,
  Progress,
  SubmitFile,
  SubmitRequest,
  Submitted,
  VendorAccount
} from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { apiOf, baseOf } from "./AnthropicCalls.ts"

const readBody = bodyFields(BatchBody)
const decodeBody = Schema.decodeUnknownOption(BatchBody)

/** The submit contains all requests, up to 256 MB. */
const submitTimeout = Duration.minutes(30)

const Batch = Schema.Struct({
  id: Schema.NonEmptyString,
  processing_status: Schema.String,
  created_at: Schema.String,
  results_url: optionalField(Schema.String),
  request_counts: Schema.Struct({
    processing: Schema.Int,
    succeeded: Schema.Int,
    errored: Schema.Int,
    canceled: Schema.Int,
    expired: Schema.Int
  })
})
type Batch = typeof Batch.Type

const Started = Schema.Struct({ id: Schema.NonEmptyString })

const Page = Schema.Struct({
  data: Schema.Array(Batch),
  has_more: optionalField(Schema.Boolean),
  last_id: optionalField(Schema.String)
})

/** The most pages of the list that are read, 100 batches each, newest first. */
const pagesMax = 20

const Job = Schema.Struct({
  id: Schema.NonEmptyString,
  submittedAtMillis: Schema.Finite,
  /** Absent if a `custom_id` was too long to be prefixed. */
  mark: Schema.optionalKey(Schema.String)
})
const jobOf = handleReader(Job, "Anthropic")

/**
 * A batch of messages at Anthropic. The submit contains the requests themselves, and each `custom_id` is prefixed with
 * a mark, by which the batch is found if the response to its submit is lost.
 * docs/reference/vendors.md#anthropic-batches
 */
export const make = (context: AdapterContext): VendorAccount => {
  const api = apiOf(context)
  const url = `${baseOf(context)}/messages/batches`
  const urlOf = (id: string) => `${url}/${encodeURIComponent(id)}`
  return {
    accountId: context.accountId,
    submit: Effect.fn("AnthropicBatches.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const body = yield* readBody(request)
      const { file } = request
      if (file === undefined) return yield* unsupportedModel(request)
      const id = yield* sent(api, url, { body, file, request })
      const submittedAtMillis = yield* Clock.currentTimeMillis
      return {
        _tag: "Accepted",
        handle: { id, submittedAtMillis, ...markIn(request) },
        pollAfter: pollIntervalAtAge(0)
      }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle) {
      const job = yield* jobOf(handle)
      const batch = yield* callVendor(api, { purpose: "query", url: urlOf(job.id), schema: Batch })
      const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
      return progressOf(batch, `${urlOf(job.id)}/results`, { age, mark: job.mark })
    }),
    cancel: Effect.fn("AnthropicBatches.cancel")(function* (
      handle: Handle
    ): Effect.fn.Return<CancelOutcome, VendorError> {
      const { id } = yield* jobOf(handle)
      yield* callVendor(api, {
        purpose: "query",
        method: "POST",
        url: `${urlOf(id)}/cancel`,
        schema: Started
      })
      return "Canceled"
    }),
    showsCancelled: true,
    list: makeList(api, url)
  }
}

/** The mark of a request, if every `custom_id` had room for it. */
const markIn = ({ body, taskId }: SubmitRequest): { readonly mark?: string } =>
  Option.exists(decodeBody(body), (it) => it.marked === true) ? { mark: markOf(taskId) } : {}

interface Sending {
  readonly request: SubmitRequest
  readonly body: BatchBody
  readonly file: SubmitFile
}

const head = Buffer.from('{"requests":[')
const tail = Buffer.from("]}")
const comma = Buffer.from(",")

/** Sends the requests as they are read. Returns the vendor's id of the batch. */
const sent = Effect.fnUntraced(function* (
  api: VendorApi,
  url: string,
  { body, file, request }: Sending
) {
  const { mark } = markIn(request)
  let broken: VendorError | undefined
  const requests = Stream.tapError(requestsOf(yield* file.open, mark), (error) =>
    Effect.sync(() => {
      broken = error
    })
  )
  const stream = Stream.succeed(head).pipe(
    Stream.concat(requests),
    Stream.concat(Stream.succeed(tail))
  )
  const readable = yield* NodeStream.toReadable(stream)
  // Each line of the file ends with a line feed; commas replace all of them but the last
  const marks = mark === undefined ? 0 : body.requests * batchMarkCharacters
  const length = head.length + file.bytes - 1 + marks + tail.length
  const submitted = callVendor(api, {
    purpose: "submit",
    model: request.upstreamModel,
    method: "POST",
    url,
    raw: { contentType: "application/json", body: readable },
    headers: {
      "content-length": String(length),
      ...(body.beta === undefined ? {} : { "anthropic-beta": body.beta })
    },
    timeout: submitTimeout,
    schema: Started
  })
  const { id } = yield* submitted.pipe(
    // The vendor received only part of the requests, and creates no batch from them
    Effect.mapError((error) => broken ?? error),
    Effect.ensuring(Effect.sync(() => readable.destroy()))
  )
  return id
})

/** The lines of the file as items of a list. */
const requestsOf = (
  file: Stream.Stream<Uint8Array, VendorError>,
  mark: string | undefined
): Stream.Stream<Uint8Array, VendorError> =>
  Stream.suspend(() => {
    const splitter = new LineSplitter(batchLineBytesMax)
    let isFirst = true
    return Stream.map(file, (chunk) =>
      Buffer.concat(
        splitter.push(chunk).flatMap(({ bytes }) => {
          const request = mark === undefined ? bytes : marked(bytes, mark)
          const isAlone = isFirst
          isFirst = false
          return isAlone ? [request] : [comma, request]
        })
      )
    ).pipe(Stream.filter(({ length }) => length > 0))
  })

const progressOf = (
  { processing_status: state, request_counts: counts, results_url: results }: Batch,
  url: string,
  { age, mark }: { readonly age: number; readonly mark: string | undefined }
): Progress => {
  const { canceled, errored: failed, expired, succeeded: completed } = counts
  if (state !== "ended") {
    const status = state === "canceling" ? "cancelling" : "in_progress"
    return {
      _tag: "Running",
      pollAfter: batchPollIntervalAtAge(age),
      batch: { status, completed, failed }
    }
  }
  const status = canceled > 0 ? "cancelled" : expired > 0 ? "expired" : "completed"
  const output = { _tag: "Url", url, mime: "application/x-jsonl", needsAuth: true } as const
  return {
    _tag: "Done",
    result: {
      items: [],
      batch: {
        status,
        completed,
        failed,
        ...(results === undefined ? {} : { output }),
        ...(mark === undefined ? {} : { mark })
      }
    }
  }
}

const makeList = (api: VendorApi, url: string) =>
  Effect.fn("AnthropicBatches.list")(function* ({ from, until }: ListQuery) {
    const found: Array<ListedJob> = []
    let after = ""
    for (let page = 1; page <= pagesMax; page += 1) {
      const {
        data,
        has_more: hasMore,
        last_id: last
      } = yield* callVendor(api, {
        purpose: "query",
        url: `${url}?limit=100${after}`,
        schema: Page
      })
      for (const batch of data) {
        const at = Date.parse(batch.created_at)
        if (at >= from && at <= until) found.push(listedOf(api, url, batch))
      }
      if (hasMore !== true || last === undefined) return found
      if (data.some((batch) => Date.parse(batch.created_at) < from)) return found
      after = `&after_id=${encodeURIComponent(last)}`
    }
    return yield* longList
  })

const sizeOf = ({ request_counts: counts }: Batch): number =>
  counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired

/** The list shows only how many requests a batch has. Once the batch has ended, its results show the mark. */
const listedOf = (api: VendorApi, url: string, batch: Batch): ListedJob => {
  const createdAtMillis = Date.parse(batch.created_at)
  const job = {
    jobId: batch.id,
    createdAtMillis,
    handle: (request: SubmitRequest) => ({
      id: batch.id,
      submittedAtMillis: createdAtMillis,
      ...markIn(request)
    })
  }
  const compare: ListedJob["compare"] = ({ body }) =>
    Option.match(decodeBody(body), {
      onNone: () => "other",
      onSome: ({ marked: isMarked, requests }) => {
        if (requests !== sizeOf(batch)) return "other"
        return isMarked === true ? "open" : "unsure"
      }
    })
  const listed = { ...job, compare }
  const read =
    batch.processing_status !== "ended"
      ? Effect.succeed(listed)
      : Effect.map(firstNameOf(api, `${url}/${encodeURIComponent(batch.id)}/results`), (name) => ({
          ...job,
          compare: (request: SubmitRequest) => {
            const alike = compare(request)
            if (alike !== "open" || name === undefined) return alike
            return name.startsWith(markOf(request.taskId)) ? ("same" as const) : ("other" as const)
          }
        }))
  return { ...listed, read }
}

const customId = /"custom_id"\s*:\s*"([\w-]+)"/u

/** The `custom_id` in the first result of a batch. */
const firstNameOf = (api: VendorApi, url: string): Effect.Effect<string | undefined, VendorError> =>
  Effect.map(
    send(api, { purpose: "query", url, until: customId, schema: Started }),
    ({ body }) => customId.exec(Buffer.from(body).toString("utf8"))?.[1]
  )

/**
 * The prefix of each `custom_id` in a task's batch. Anthropic's batches have no metadata, so the results show by this
 * mark which task a batch belongs to. Its 60 bits distinguish the batches of an account.
 */
export const markOf = (taskId: string): string =>
  createHash("sha256").update(taskId).digest("base64url").slice(0, batchMarkCharacters)

/** Returns the request with the mark before its `custom_id`, whatever JSON escapes the `custom_id` uses. */
export const marked = (line: Uint8Array, mark: string): Uint8Array => {
  const customId = memberOf(line, "custom_id")
  if (customId === undefined) return line
  const at = customId.byteOffset - line.byteOffset + 1
  return Buffer.concat([line.subarray(0, at), Buffer.from(mark), line.subarray(at)])
}
