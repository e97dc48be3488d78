import { Duration, Effect, Option, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../BaseUrl.ts"
import { blocking } from "../Blocking.ts"
import { bodyFields, unlessOneOf } from "../BodyFields.ts"
import { jobFailed, readAs } from "../Faults.ts"
import type { FaultRule, ReportedError } from "../Faults.ts"
import { base64 } from "../MediaTexts.ts"
import { optionalField } from "../OptionalField.ts"
import { callVendor } from "../VendorCall.ts"
import type { VendorApi } from "../VendorCall.ts"
import type { ResultItem, SubmitRequest, Submitted, VendorAccount } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import type { VendorResponse } from "../VendorHttp.ts"

/** A 4K image takes minutes. */
const generateTimeout = Duration.seconds(300)

const fieldsOf = bodyFields(
  Schema.Struct({
    prompt: Schema.String,
    aspect_ratio: Schema.optionalKey(Schema.String),
    resolution: Schema.optionalKey(Schema.String),
    seed: Schema.optionalKey(Schema.Int)
  })
)

/** The fields of a body that are sent, in addition to `n`. */
export const taken: ReadonlySet<string> = new Set([
  "prompt",
  "images",
  "aspect_ratio",
  "resolution",
  "seed",
  "n"
])

/** One call returns one image. */
export const valueFault = (_model: string, field: string, value: unknown): string | undefined =>
  field === "n" ? unlessOneOf([1], value) : undefined

const Part = Schema.Struct({
  inlineData: optionalField(Schema.Struct({ mimeType: Schema.String, data: Schema.String })),
  text: optionalField(Schema.String),
  thought: optionalField(Schema.Boolean)
})

const Generated = Schema.Struct({
  responseId: optionalField(Schema.String),
  promptFeedback: optionalField(
    Schema.Struct({
      blockReason: optionalField(Schema.String),
      blockReasonMessage: optionalField(Schema.String)
    })
  ),
  candidates: optionalField(
    Schema.Array(
      Schema.Struct({
        content: optionalField(Schema.Struct({ parts: optionalField(Schema.Array(Part)) })),
        finishReason: optionalField(Schema.String),
        finishMessage: optionalField(Schema.String)
      })
    )
  )
})
type Generated = typeof Generated.Type

/** Finish reasons inside a 200, and the statuses of errors. docs/reference/vendors.md#gemini-errors */
const rules: ReadonlyArray<FaultRule> = [
  {
    codes: ["SAFETY", "IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_PROHIBITED_CONTENT"],
    class: "CONTENT"
  },
  { codes: ["BLOCKLIST", "SPII", "RECITATION", "IMAGE_RECITATION"], class: "CONTENT" },
  { codes: ["NO_IMAGE", "IMAGE_OTHER", "OTHER", "MAX_TOKENS", "STOP"], class: "FAILED" },
  { message: /^(?:this model )?models\/\S+ is (?:no longer available|not found)/iu, class: "GONE" },
  // Matched only at the beginning: the rest of a message may quote the client
  { message: /^api key (?:not valid|expired|not found)/iu, class: "OPERATOR" },
  { codes: ["FAILED_PRECONDITION"], message: /billing|location|free tier/iu, class: "OPERATOR" },
  { codes: ["INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"], class: "FATAL_CLIENT" },
  { codes: ["UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"], class: "OPERATOR" },
  { codes: ["RESOURCE_EXHAUSTED"], class: "RATE_LIMITED" },
  { codes: ["INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"], class: "RETRYABLE" }
]

/** For `promptFeedback.blockReason`, whatever the reason. */
const blockedPrompt: ReadonlyArray<FaultRule> = [{ class: "CONTENT" }]

const Failure = Schema.Struct({
  error: Schema.Struct({
    message: optionalField(Schema.String),
    status: optionalField(Schema.String),
    details: optionalField(
      Schema.Array(Schema.Struct({ retryDelay: optionalField(Schema.String) }))
    )
  })
})
const read = readAs(Failure)

/** The wait in milliseconds: `46s` from RetryInfo, or "Please retry in 46.2s" from the message. */
const waitOf = (delay: string | undefined, message: string | undefined): number | undefined => {
  const match =
    /^([\d.]+)s$/u.exec(delay ?? "") ?? /retry in ([\d.]+)s/iu.exec(message ?? "") ?? undefined
  const seconds = Number(match?.[1] ?? Number.NaN)
  return Number.isFinite(seconds) ? seconds * 1000 : undefined
}

const reportedError = (response: VendorResponse): ReportedError | undefined =>
  Option.getOrUndefined(
    Option.map(read(response), ({ error: { details, message, status } }) => ({
      code: status,
      message,
      retryAfterMillis: waitOf(
        details?.map(({ retryDelay }) => retryDelay).find((it) => it !== undefined),
        message
      )
    }))
  )

/** A blocking call that returns images inline. docs/reference/vendors.md#gemini-images */
export const make = (context: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = context
  const base = withVersion(account.baseUrl, "/v1beta")
  const api: VendorApi = { http, headers: auth, rules, reportedError, observeResponse }
  return {
    accountId,
    submit: Effect.fn("GeminiImage.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const generated = yield* callVendor(api, {
        purpose: "submit",
        model: request.upstreamModel,
        method: "POST",
        url: `${base}/models/${encodeURIComponent(request.upstreamModel)}:generateContent`,
        json: yield* bodyOf(request),
        timeout: generateTimeout,
        schema: Generated
      })
      return { _tag: "Done", result: { items: yield* itemsOf(generated) } }
    }),
    ...blocking
  }
}

/** The upstream reads no URLs, so images are always sent inline. */
const bodyOf = Effect.fnUntraced(function* (request: SubmitRequest) {
  const fields = yield* fieldsOf(request)
  const { aspect_ratio: aspectRatio, prompt, resolution: imageSize, seed } = fields
  const pictures = yield* Effect.forEach(request.media, ({ bytes, mime }) =>
    Effect.map(bytes, (it) => ({ inlineData: { mimeType: mime, data: base64(it) } }))
  )
  const imageConfig = {
    ...(aspectRatio === undefined ? {} : { aspectRatio }),
    ...(imageSize === undefined ? {} : { imageSize })
  }
  return {
    contents: [{ role: "user", parts: [{ text: prompt }, ...pictures] }],
    generationConfig: {
      responseModalities: ["TEXT", "IMAGE"],
      imageConfig,
      ...(seed === undefined ? {} : { seed })
    }
  }
})

/**
 * The images of a response. Failures are reported inside a 200. A response without an image (other than thoughts) is a
 * failure. The last of several images is the final one and is returned first: the call pays for one image, and the
 * others are surplus. docs/reference/vendors.md#gemini-images
 */
const itemsOf = (generated: Generated): Effect.Effect<ReadonlyArray<ResultItem>, VendorError> => {
  const [candidate] = generated.candidates ?? []
  const items = (candidate?.content?.parts ?? []).flatMap(
    ({ inlineData, thought }): ReadonlyArray<ResultItem> =>
      inlineData === undefined || thought === true
        ? []
        : [
            {
              _tag: "Bytes",
              bytes: new Uint8Array(Buffer.from(inlineData.data, "base64")),
              mime: inlineData.mimeType
            }
          ]
  )
  const blocked = generated.promptFeedback
  const code = candidate?.finishReason ?? blocked?.blockReason
  if (items.length > 0 && (code === undefined || code === "STOP")) {
    return Effect.succeed(items.toReversed())
  }
  const requestId = generated.responseId
  const reason = candidate?.finishMessage ?? blocked?.blockReasonMessage
  const message = reason ?? `No image was generated: ${code ?? "no reason given"}`
  const isPrompt = candidate === undefined && blocked?.blockReason !== undefined
  return Effect.fail(
    // `OTHER` as a finish reason fails an image; as the reason for a blocked prompt it refuses the content
    jobFailed(isPrompt ? blockedPrompt : rules, { code, message, requestId })
  )
}
