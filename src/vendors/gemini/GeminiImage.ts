import { Duration, Effect, Schema } from "effect"
import type { AdapterContext } from "../AdapterContext.ts"
import { withVersion } from "../Bases.ts"
import { blocking } from "../Blocking.ts"
import { bodyFields } from "../BodyFields.ts"
import { jobFailed } from "../Faults.ts"
import { base64 } from "../MediaTexts.ts"
import { maybe } from "../OptionalField.ts"
import { ask } from "../VendorCall.ts"
import type { Dialect } from "../VendorCall.ts"
import type { ResultItem, SubmitRequest, Submitted, VendorAccount } from "../VendorClient.ts"
import type { VendorError } from "../VendorError.ts"
import { blockedPrompt, refusalOf, rules } from "./GeminiFaults.ts"

/** A 4K picture takes minutes. */
const generateTimeout = Duration.seconds(300)

const fieldsOf = bodyFields(
  Schema.Struct({
    prompt: Schema.String,
    aspect_ratio: Schema.optionalKey(Schema.String),
    resolution: Schema.optionalKey(Schema.String)
  })
)

const Part = Schema.Struct({
  inlineData: maybe(Schema.Struct({ mimeType: Schema.String, data: Schema.String })),
  text: maybe(Schema.String),
  thought: maybe(Schema.Boolean)
})

const Generated = Schema.Struct({
  responseId: maybe(Schema.String),
  promptFeedback: maybe(
    Schema.Struct({
      blockReason: maybe(Schema.String),
      blockReasonMessage: maybe(Schema.String)
    })
  ),
  candidates: maybe(
    Schema.Array(
      Schema.Struct({
        content: maybe(Schema.Struct({ parts: maybe(Schema.Array(Part)) })),
        finishReason: maybe(Schema.String),
        finishMessage: maybe(Schema.String)
      })
    )
  )
})
type Generated = typeof Generated.Type

/** F2 of vendors.md C: `generateContent` that answers with pictures inline (vendors.md A2). */
export const make = (line: AdapterContext): VendorAccount => {
  const { account, accountId, auth, observeResponse, http } = line
  const base = withVersion(account.baseUrl, "/v1beta")
  const dialect: Dialect = { http, headers: auth, rules, refusalOf, observeResponse }
  return {
    accountId,
    submit: Effect.fn("GeminiImage.submit")(function* (
      request: SubmitRequest
    ): Effect.fn.Return<Submitted, VendorError> {
      const generated = yield* ask(dialect, {
        purpose: "submit",
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

/** The upstream reads no URLs here: pictures go inline, whatever the client sent (vendors.md A2). */
const bodyOf = Effect.fnUntraced(function* (request: SubmitRequest) {
  const { aspect_ratio: aspectRatio, prompt, resolution: imageSize } = yield* fieldsOf(request)
  const pictures = yield* Effect.forEach(request.media, ({ bytes, mime }) =>
    Effect.map(bytes, (it) => ({ inlineData: { mimeType: mime, data: base64(it) } }))
  )
  const imageConfig = {
    ...(aspectRatio === undefined ? {} : { aspectRatio }),
    ...(imageSize === undefined ? {} : { imageSize })
  }
  return {
    contents: [{ role: "user", parts: [{ text: prompt }, ...pictures] }],
    generationConfig: { responseModalities: ["TEXT", "IMAGE"], imageConfig }
  }
})

/** All are told inside a 200. No picture that is not a thought is a failure, whatever the reason says. */
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
  if (items.length > 0 && (code === undefined || code === "STOP")) return Effect.succeed(items)
  const requestId = generated.responseId
  const told = candidate?.finishMessage ?? blocked?.blockReasonMessage
  const message = told ?? `No image was made: ${code ?? "none told why"}`
  const isPrompt = candidate === undefined && blocked?.blockReason !== undefined
  return Effect.fail(
    // A blocked prompt is a verdict, also for a reason (`OTHER`) that is a mere failure of an image
    jobFailed(isPrompt ? blockedPrompt : rules, { code, message, requestId })
  )
}
