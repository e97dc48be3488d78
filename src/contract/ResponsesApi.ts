import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { InferenceKey } from "./Access.ts"
import { documented } from "./Documented.ts"
import { withHeaders } from "./Headers.ts"
import { problems } from "./Problems.ts"

/** A response in OpenAI's format. Members that are not listed here are the vendor's. docs/reference/background.md */
export const BackgroundResponse = Schema.StructWithRest(
  Schema.Struct({
    id: Schema.String,
    object: Schema.Literal("response"),
    created_at: Schema.Finite,
    status: Schema.Literals([
      "queued",
      "in_progress",
      "completed",
      "incomplete",
      "failed",
      "cancelled"
    ]),
    background: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
    model: Schema.String,
    output: Schema.Array(Schema.Unknown),
    previous_response_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
    error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String }))
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

const params = {
  response_id: Schema.String.check(Schema.isPattern(/^resp_[0-9a-f]{32}$/u)).annotate({
    description: "The id that create returned"
  })
}
const success = withHeaders(BackgroundResponse, ["X-Service-Cost"])
const theResponse = { 200: { description: "The response" } }

export const getResponse = HttpApiEndpoint.get("getResponse", "/v1/responses/:response_id", {
  params,
  query: {
    stream: Schema.optionalKey(Schema.Literals(["true", "false"])),
    starting_after: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\d{1,9}$/u)))
  },
  success: [
    success,
    Schema.String.annotate({ description: "Only events after this sequence number" }).pipe(
      HttpApiSchema.asText({ contentType: "text/event-stream" })
    )
  ],
  error: problems(400, 401, 403, 404, 405, 429, 500, 502, 503)
}).annotateMerge(
  documented({ summary: "Get a response in the background", responses: theResponse })
)

export const cancelResponse = HttpApiEndpoint.post(
  "cancelResponse",
  "/v1/responses/:response_id/cancel",
  {
    params,
    success,
    error: problems(400, 401, 403, 404, 405, 409, 429, 500, 502, 503)
  }
).annotateMerge(
  documented({
    summary: "Cancel a response in the background",
    responses: { 200: { description: "The response as it ended" } }
  })
)

/** Responses that `POST /v1/responses` created with `background: true`. docs/reference/background.md */
export class ResponsesApi extends HttpApiGroup.make("responses", { topLevel: true })
  .add(getResponse, cancelResponse)
  .middleware(InferenceKey) {}
