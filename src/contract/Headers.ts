import { Schema, Struct } from "effect"
import { HttpApiSchema } from "effect/http-api"

/**
 * Headers of requests and responses. The service's own headers contain its name, which is `Service` unless configured
 * otherwise.
 */

const given = <S extends Schema.Top>(schema: S) => Schema.optionalKey(schema)
const text = (description: string, example: string) =>
  given(Schema.String.annotate({ description, examples: [example] }))

/** Request headers, from which an endpoint lists those that it reads. */
export const requestHeaders = {
  "Idempotency-Key": given(
    Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(255)).annotate({
      description:
        "Same key and same body within 24 hours: the first response again, one task, one hold",
      examples: ["order-1"]
    })
  ),
  Prefer: text(
    "Waits this many seconds at most for the end of the task; other preferences are ignored",
    "wait=30"
  ),
  "X-Service-Max-Cost": text(
    "The most credits that the request may cost; if it could cost more, it is refused with code 1103 before anything is held",
    "7.50"
  ),
  "Anthropic-Version": given(
    Schema.String.annotate({
      description: "Clients of Anthropic send it: they get Anthropic's models in Anthropic's shape"
    })
  ),
  "If-None-Match": given(
    Schema.String.annotate({ description: "The `ETag` of an earlier response" })
  )
}

/** Headers of responses. docs/reference/http.md#every-response */
export const responseHeaders = {
  Traceparent: text(
    "W3C trace context of the request: quote it when reporting a problem",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  ),
  "X-Service-Sandbox": text("Present when the response comes from the simulator", "true"),
  "X-Service-Cost": text("Credits held, later settled, with two decimals", "7.50"),
  "X-Service-Call-Id": text(
    "The receipt of the call: `/manage/v1/calls/{id}`",
    "01a1fde8-21f4-7d82-8c09-ff1738b15d2e"
  ),
  "X-Service-Balance": text("Credits available after the hold, with two decimals", "992.50"),
  "X-Service-Budget-Remaining": text(
    "Credits that the spend limit of the API key leaves after the hold; absent without a limit",
    "12.50"
  ),
  "X-Service-Model": text(
    "For an alias, or a model name of OpenAI's: the model that was used, as vendor/model",
    "dashscope/text-to-image-max"
  ),
  "X-Service-Skipped": text(
    "For an alias: the models that were skipped, and why (RFC 9651)",
    '"fal/flux-dev";reason=rate_limited'
  ),
  "X-Service-Size": text("The size of the model that was chosen", "1328x1328"),
  "X-Service-Ignored": text("Fields of the request that had no effect", "quality, style"),
  "Idempotency-Replayed": text("Present when this is the first response again", "true"),
  "Preference-Applied": text("The preference that was honoured", "wait=30"),
  Deprecation: text(
    "For a model that its vendor is retiring: when it was deprecated (RFC 9745)",
    "@1795305600"
  ),
  Sunset: text(
    "For a model that its vendor is retiring: when it is retired (RFC 8594)",
    "Fri, 11 Dec 2026 00:00:00 GMT"
  ),
  ETag: text("Identifies this response, for `If-None-Match`", '"abc"'),
  "Retry-After": given(
    Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
      description: "Seconds to wait before the next request"
    })
  ),
  "X-Should-Retry": text(
    "On the routes of OpenAI, Anthropic and Google: the same request would be refused again",
    "false"
  ),
  Allow: text("The methods of the path", "GET, HEAD, DELETE"),
  "WWW-Authenticate": text("How to authenticate", "Bearer"),
  "Accept-Ranges": given(Schema.String.annotate({ description: "Always `bytes`" }))
}

export type ResponseHeader = keyof typeof responseHeaders

/** A response with these headers, in addition to those of every response. */
export const withHeaders = <S extends Schema.Top>(
  schema: S,
  names: ReadonlyArray<ResponseHeader>
) => HttpApiSchema.WithHeaders(schema, Struct.pick(responseHeaders, names))

/** Sent for a model that its vendor is ending. docs/catalog.md#models-that-end */
export const endingHeaders = ["Deprecation", "Sunset"] as const

/** Sent for an alias: the model that responded, and the skipped models. docs/reference/aliases.md#who-did-it */
export const modelHeaders = ["X-Service-Model", "X-Service-Skipped"] as const
