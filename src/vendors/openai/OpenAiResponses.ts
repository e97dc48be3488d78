import { Clock, Effect, Option, Schema } from "effect"
import { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import { responderOf, usageOf } from "../../catalog/Usage.ts"
import { responseIdOf, TaskId } from "../../domain/Ids.ts"
import { at } from "../../domain/json/Json.ts"
import { withMember } from "../../domain/json/JsonBytes.ts"
import { responseBytesMax } from "../../domain/limits/Limits.ts"
import type { AdapterContext } from "../AdapterContext.ts"
import { bodyFields, unsupportedModel } from "../BodyFields.ts"
import { jobFailed, jsonIn, readAs, unreadableError } from "../Faults.ts"
import { optionalField } from "../OptionalField.ts"
import { handleReader, pollIntervalAtAge, submitTimeout } from "../Polling.ts"
import { callVendor, failResponse, send } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type {
  CancelOutcome,
  Handle,
  Progress,
  SubmitRequest,
  Submitted,
  VendorAccount,
  VendorTokens
} from "../VendorClient.ts"
import { VendorError } from "../VendorError.ts"
import { isOk } from "../VendorHttp.ts"
import type { VendorResponse } from "../VendorHttp.ts"
import { apiOf, baseOf, rules } from "./OpenAiCalls.ts"

const readBody = bodyFields(ResponseBody)

const Started = Schema.Struct({ id: Schema.NonEmptyString })
const readStarted = readAs(Started)

/** The first event of a stream. */
const FirstEvent = Schema.fromJsonString(Schema.Struct({ response: Started }))
const decodeFirstEvent = Schema.decodeUnknownOption(FirstEvent)

/**
 * The handle of a response at the vendor, with the gateway's ids, which replace the vendor's ids in the stored result.
 */
const Job = Schema.Struct({
  id: Schema.NonEmptyString,
  as: Schema.String,
  previous: Schema.optionalKey(Schema.String),
  stream: Schema.Boolean,
  /** The size of the request in bytes. */
  bytes: Schema.Finite,
  submittedAtMillis: Schema.Finite
})
type Job = typeof Job.Type
const jobOf = handleReader(Job, "OpenAI")

const Polled = Schema.Struct({
  status: Schema.String,
  error: optionalField(
    Schema.Struct({ code: optionalField(Schema.String), message: optionalField(Schema.String) })
  )
})
const decodePolled = Schema.decodeUnknownOption(Polled)

/**
 * A response that runs in the background at OpenAI: submitted with `background: true`, polled by the vendor's id.
 * docs/reference/vendors.md#openai-background-responses
 */
export const make = (context: AdapterContext): VendorAccount => {
  const api = apiOf(context)
  const base = baseOf(context)
  const urlOf = (id: string) => `${base}/responses/${encodeURIComponent(id)}`
  return {
    accountId: context.accountId,
    submit: Effect.fn("OpenAiResponses.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const { bytes, previous, stream } = yield* readBody(request)
      const [medium] = request.media
      if (medium === undefined) return yield* unsupportedModel(request)
      const given = yield* medium.bytes
      const id = yield* started(api, `${base}/responses`, request.upstreamModel, {
        body:
          previous === undefined
            ? given
            : withMember(given, "previous_response_id", previous.vendor_id),
        stream
      })
      const handle: Job = {
        id,
        as: responseIdOf(TaskId.make(request.taskId)),
        ...(previous === undefined ? {} : { previous: previous.id }),
        stream,
        bytes,
        submittedAtMillis: yield* Clock.currentTimeMillis
      }
      return { _tag: "Accepted", handle, pollAfter: pollIntervalAtAge(0) }
    }),
    poll: Effect.fnUntraced(function* (handle: Handle) {
      const job = yield* jobOf(handle)
      const response = yield* send(api, { purpose: "query", url: urlOf(job.id), schema: Polled })
      return yield* progressOf(api, job, response)
    }),
    cancel: Effect.fn("OpenAiResponses.cancel")(function* (
      handle: Handle
    ): Effect.fn.Return<CancelOutcome, VendorError> {
      const { id } = yield* jobOf(handle)
      const url = `${urlOf(id)}/cancel`
      yield* callVendor(api, { purpose: "query", method: "POST", url, json: {}, schema: Started })
      return "Canceled"
    }),
    showsCancelled: true,
    eventsUrl: (handle, after) =>
      Effect.map(jobOf(handle), ({ id }) => {
        const from = after === undefined ? "" : `&starting_after=${after}`
        return `${urlOf(id)}?stream=true${from}`
      })
  }
}

/**
 * The vendor's id of a new response. In a stream, the first event has it, and the response continues without a reader.
 */
const started = Effect.fnUntraced(function* (
  api: VendorApi,
  url: string,
  model: string,
  { body, stream }: { readonly body: Uint8Array; readonly stream: boolean }
) {
  const response = yield* send(api, {
    purpose: "submit",
    model,
    method: "POST",
    url,
    raw: { contentType: "application/json", body },
    timeout: submitTimeout,
    ...(stream ? { until: firstEvent } : {}),
    schema: Started
  })
  if (!isOk(response)) return yield* failResponse(api, "submit", response)
  const found = stream ? startedIn(response) : readStarted(response)
  return (yield* Effect.mapError(Effect.fromOption(found), () =>
    unreadableError("submit", response)
  )).id
})

const startedIn = ({ body }: VendorResponse) => {
  const [, event] = /^data:(.*)$/mu.exec(Buffer.from(body).toString("utf8")) ?? []
  return Option.map(decodeFirstEvent(event), ({ response }) => response)
}

/** The end of the first event of a stream. */
const firstEvent = /\r?\n\r?\n/u

const progressOf = Effect.fnUntraced(function* (
  api: VendorApi,
  job: Job,
  response: VendorResponse
): Effect.fn.Return<Progress, VendorError> {
  if (!isOk(response)) return yield* failResponse(api, "query", response)
  const value = jsonIn(response)
  const polled = decodePolled(value)
  if (Option.isNone(polled)) return yield* unreadableError("query", response)
  if (response.body.length > responseBytesMax) return yield* tooLarge
  const { error, status } = polled.value
  switch (status) {
    case "completed":
    case "incomplete":
      return {
        _tag: "Done",
        result: {
          items: [{ _tag: "Bytes", mime: "application/json", bytes: renamed(job, response.body) }],
          tokens: { ...tokensOf(job, value, response.body.length), end: status }
        }
      }
    case "cancelled":
      return {
        _tag: "Done",
        result: {
          items: [],
          tokens: { ...tokensOf(job, value, outputLength(value)), end: status }
        }
      }
    case "failed":
      return yield* jobFailed(rules, { code: error?.code, message: error?.message })
    default: {
      const age = (yield* Clock.currentTimeMillis) - job.submittedAtMillis
      return { _tag: "Running", pollAfter: pollIntervalAtAge(age) }
    }
  }
})

const tooLarge = new VendorError({
  class: "FAILED",
  message: `The response is larger than ${responseBytesMax} bytes`
})

/** The document with the gateway's ids instead of the vendor's. */
const renamed = ({ as, previous }: Job, bytes: Uint8Array): Uint8Array => {
  const own = withMember(bytes, "id", as)
  return previous === undefined ? own : withMember(own, "previous_response_id", previous)
}

/** The vendors' usual estimate. docs/reference/passthrough.md#metering */
const bytesPerToken = 4

const tokensOf = (
  { bytes }: Job,
  value: unknown,
  outputBytes: number
): Omit<VendorTokens, "end"> => {
  const usage = usageOf("openai-responses", value)
  const responder = responderOf("openai-responses", value)
  return {
    ...(usage === undefined ? {} : { usage }),
    ...(responder === undefined ? {} : { responder }),
    counted: {
      inputTokens: Math.ceil(bytes / bytesPerToken),
      outputTokens: Math.ceil(outputBytes / bytesPerToken)
    }
  }
}

/** The length of the output of a cancelled response. */
const outputLength = (value: unknown): number => {
  const output = at(value, "output")
  return Array.isArray(output) && output.length > 0 ? JSON.stringify(output).length : 0
}
