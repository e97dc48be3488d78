import { Duration, Effect, Option, Schema, Stream } from "effect"
import { ResponseBody } from "../catalog/bodies/ResponseBody.ts"
import { responderOf, usageOf } from "../catalog/Usage.ts"
import { responseIdOf, TaskId } from "../domain/Ids.ts"
import { at } from "../domain/json/Json.ts"
import type { SubmitRequest, VendorResult } from "../vendors/VendorClient.ts"
import type { VendorError } from "../vendors/VendorError.ts"
import { parseRequest } from "./Completion.ts"
import type { Completion } from "./Completion.ts"
import { openAiResponse, openAiResponseEvents } from "./ResponsesFormat.ts"
import { Ending } from "./Script.ts"

const Choice = Schema.Struct({
  tokens: Schema.Array(Schema.String),
  tool: Schema.NullOr(
    Schema.Struct({ name: Schema.String, arguments: Schema.Record(Schema.String, Schema.Json) })
  ),
  isTruncated: Schema.Boolean
})

/** The handle of a simulated background response, with everything that its polls and its stream need. */
const ResponseJob = Schema.Struct({
  taskId: Schema.String,
  submittedAtMillis: Schema.Finite,
  delayMillis: Schema.Finite,
  ending: Ending,
  /** Stands for the vendor's id. Equal requests have equal ids. */
  id: Schema.String,
  completion: Schema.Struct({
    seed: Schema.String,
    model: Schema.String,
    choice: Choice,
    inputTokens: Schema.Int,
    outputTokens: Schema.Int
  }),
  /** Members of the response that depend on the request. */
  more: Schema.Record(Schema.String, Schema.Json)
})
export type ResponseJob = typeof ResponseJob.Type

export const responseJobIn = Schema.decodeUnknownOption(ResponseJob)

const decodeBody = Schema.decodeUnknownOption(ResponseBody)
const decodeTool = Schema.decodeUnknownOption(Choice.fields.tool)

/** A request with the text that contains its directives. `None` if it cannot be read. */
export const readResponseRequest = Effect.fnUntraced(function* ({ body, media }: SubmitRequest) {
  const known = decodeBody(body)
  const [medium] = media
  if (Option.isNone(known) || medium === undefined) return Option.none()
  const { body: request, completion } = parseRequest({
    path: "/v1/responses",
    body: yield* medium.bytes
  })
  const { previous, shown } = known.value
  const [{ isTruncated, tokens, tool }] = completion.choices
  const { inputTokens, model, outputTokens, seed } = completion
  const choice = {
    tokens,
    isTruncated,
    tool: Option.getOrElse(decodeTool(tool ?? null), () => null)
  }
  return Option.some({
    prompt: promptIn(at(request, "input")),
    job: {
      id: `resp_${seed.slice(0, 32)}`,
      completion: { seed, model, choice, inputTokens, outputTokens },
      more: {
        ...shown,
        background: true,
        store: true,
        previous_response_id: previous?.vendor_id ?? null
      }
    }
  })
})

const promptIn = (input: unknown): string =>
  typeof input === "string" ? input : (JSON.stringify(input) ?? "")

const responseOf = ({ completion, more }: ResponseJob): Completion & { readonly more: object } => {
  const { choice, ...rest } = completion
  return { ...rest, choices: [{ ...choice, tool: choice.tool ?? undefined }], more }
}

/** The response with its id in the gateway. */
export const resultOf = (job: ResponseJob): VendorResult => {
  const document = {
    ...openAiResponse(responseOf(job)),
    id: responseIdOf(TaskId.make(job.taskId))
  }
  const { inputTokens, outputTokens } = job.completion
  const usage = usageOf("openai-responses", document)
  const responder = responderOf("openai-responses", document)
  return {
    items: [
      {
        _tag: "Bytes",
        mime: "application/json",
        bytes: new TextEncoder().encode(JSON.stringify(document))
      }
    ],
    tokens: {
      ...(usage === undefined ? {} : { usage }),
      ...(responder === undefined ? {} : { responder }),
      counted: { inputTokens, outputTokens },
      end: job.completion.choice.isTruncated ? "incomplete" : "completed"
    }
  }
}

/** The number of events (created, in progress) that are sent at once. */
const begunEvents = 2

/** The numbered events after this number. */
export const eventsOf = (
  job: ResponseJob,
  remainingMillis: number,
  after = -1
): Stream.Stream<Uint8Array, VendorError> => {
  const utf8 = new TextEncoder()
  const events = openAiResponseEvents(responseOf(job)).map((text) => utf8.encode(text))
  const part = (from: number, until: number) =>
    Stream.fromIterable(events.slice(Math.max(after + 1, from), Math.max(after + 1, until)))
  const madeEvents = job.ending === "done" ? events.length : begunEvents
  // One that fails ends without its last event
  const rest =
    job.ending === "done" || job.ending === "fail"
      ? Stream.concat(
          Stream.fromEffectDrain(Effect.sleep(Duration.millis(Math.max(0, remainingMillis)))),
          part(begunEvents, madeEvents)
        )
      : Stream.never
  return Stream.concat(part(0, begunEvents), rest)
}
