import * as NodeStream from "@effect/platform-node/NodeStream"
import { Duration, Effect, Result, Schema, Stream } from "effect"
import type { ResponseBody } from "../../catalog/bodies/ResponseBody.ts"
import type { TaskModel } from "../../catalog/CatalogEntry.ts"
import { referenceTo } from "../../catalog/media/Media.ts"
import { AppConfig } from "../../config/Config.ts"
import { taskTimeMillis } from "../../domain/Ids.ts"
import { at } from "../../domain/json/Json.ts"
import { withoutMember } from "../../domain/json/JsonBytes.ts"
import { documentOf, valueWithTexts } from "../../domain/json/JsonDocument.ts"
import { LongText } from "../../domain/json/LongText.ts"
import { responseSettingsBytesMax } from "../../domain/limits/Limits.ts"
import { problem } from "../../domain/Problem.ts"
import type { FieldFault, Problem } from "../../domain/Problem.ts"
import { inSlices } from "../../domain/shares/Slices.ts"
import type {
  BackgroundCall,
  PassthroughCall,
  ResponseCalls
} from "../../passthrough/PassthroughCall.ts"
import { Admission, counted } from "../../process/admission/Admission.ts"
import type { AcceptedOffer, AcceptRequest } from "../../tasks/creation/TaskAcceptance.ts"
import { createdId } from "../../tasks/creation/TaskCreation.ts"
import type { Created, PricedOrder } from "../../tasks/creation/TaskCreation.ts"
import { Responses } from "../../tasks/responses/Responses.ts"
import { allowsModel } from "../../users/ApiKeys.ts"
import { makeUrlCheck } from "../../webhooks/WebhookUrl.ts"
import type { CheckUrl } from "../../webhooks/WebhookUrl.ts"
import { eventBytes, eventStreamHeaders } from "../server/EventStream.ts"
import { headerText } from "../server/HeaderText.ts"
import { idempotencyKeyOf } from "../server/IdempotencyKey.ts"
import { readAttachments } from "../tasks/Attachments.ts"
import { headerOf, makeCreatedHeaders } from "../tasks/CreatedTask.ts"
import { makeResponseEvents } from "./ResponseEvents.ts"
import { responseOf, shownOf } from "./ResponseObject.ts"

/**
 * Creates background responses for the passthrough: a call with `background: true` becomes a task.
 * docs/reference/background.md
 */
export const makeResponseCalls = Effect.gen(function* () {
  const responses = yield* Responses
  const openEvents = yield* makeResponseEvents
  const { creates } = yield* Admission
  const { serviceName } = yield* AppConfig
  const checkUrl = yield* makeUrlCheck
  const header = headerOf(serviceName)
  const createdHeaders = makeCreatedHeaders(header)

  /**
   * Streams a response that was just created. The response exists, so a failure only ends the stream, which can be
   * opened again.
   */
  const streamOf = ({ call, mayStill }: Repeatable, id: string) => {
    const events = Effect.flatMap(responses.get(call.principal.userId, id), (response) =>
      openEvents(response, undefined, mayStill)
    )
    return NodeStream.toReadable(eventBytes(Stream.unwrap(events)))
  }

  const respond = Effect.fnUntraced(function* (
    given: Repeatable,
    model: string,
    request: Readonly<Record<string, unknown>>,
    created: Created
  ) {
    const id = yield* createdId(created)
    const shown = responseOf({
      id,
      model,
      status: "pending",
      createdAtMillis: taskTimeMillis(id),
      error: null,
      shown: shownOf(request),
      previous: given.call.previous?.id ?? null
    })
    const streams = isStreamed(request)
    const kind = streams
      ? eventStreamHeaders
      : { "content-type": "application/json", "cache-control": "no-store", ...pollAfter }
    return {
      status: 200,
      headers: { ...createdHeaders(created), [header("task-id")]: id, ...kind },
      body: streams ? yield* streamOf(given, shown.id) : Buffer.from(JSON.stringify(shown)),
      sandbox: created.sandbox,
      callId: undefined,
      cost: created.cost,
      left: created.left ?? undefined,
      ending: created.ending,
      by: undefined
    }
  })

  const create: ResponseCalls["create"] = Effect.fn("BackgroundCalls.create")(function* (given) {
    const { principal } = given.call
    const request = yield* readRequest(given.call.body)
    const order = yield* orderOf(given, request, responses.isSandbox(), checkUrl)
    const created = yield* counted(creates, principal.userId, responses.create(order))
    return yield* respond(given, order.request.path.model, request, created)
  })

  const replay: ResponseCalls["replay"] = Effect.fn("BackgroundCalls.replay")(
    function* (given, name, refusal) {
      if (!allowsModel(given.call.principal, [name])) return yield* refusal
      const request = yield* readRequest(given.call.body)
      const repeated = yield* acceptRequestOf(given.call, name, request)
      return yield* respond(given, name, request, yield* responses.replay(repeated, refusal))
    }
  )

  return {
    create,
    replay,
    previous: ({ userId }, id) => responses.continued(userId, id)
  } satisfies ResponseCalls
})

/** Headers that the polling helpers of OpenAI's clients read. docs/reference/tasks.md#polling */
export const pollAfter = { "openai-poll-after-ms": "2000", "retry-after": "2" }

type Repeatable = Pick<BackgroundCall, "call" | "mayStill">

const isStreamed = (request: Readonly<Record<string, unknown>>): boolean =>
  request["stream"] === true

/** The request for a response of this model. */
const acceptRequestOf = (
  { headers, maxCost, principal, to, traceId }: PassthroughCall,
  model: string,
  request: Readonly<Record<string, unknown>>
): Effect.Effect<AcceptRequest, Problem> => {
  const key = headerText(headers, "idempotency-key")
  return Effect.map(idempotencyKeyOf(key, `POST ${to.path}`, request), (idempotency) => ({
    principal,
    path: { vendor: to.route.vendor, model, action: "responses" },
    traceId,
    idempotency,
    maxCost
  }))
}

/** The order for a planned call. Fails with 2001 for settings that this service cannot store. */
const orderOf = Effect.fnUntraced(function* (
  { account, call, model, plan }: BackgroundCall,
  value: Readonly<Record<string, unknown>>,
  sandbox: boolean,
  checkUrl: CheckUrl
) {
  const { previous, principal, to } = call
  const name = plan.model ?? model.model
  const { metadata, webhook } = yield* readAttachments(value, checkUrl, settingsFaults(value))
  const bytes = webhook === null ? call.body : withoutMember(call.body, "webhook")
  const entry: TaskModel = {
    vendor: to.route.vendor,
    model: name,
    label: "response",
    result: "responses",
    adapter: "openai-responses",
    upstreamModel: model.model
  }
  const body: ResponseBody = {
    request: referenceTo(""),
    bytes: bytes.length,
    stream: isStreamed(value),
    ...(account === undefined ? {} : { account }),
    ...(previous === undefined
      ? {}
      : { previous: { id: previous.id, vendor_id: previous.vendorId } }),
    shown: shownOf(value)
  }
  const order: PricedOrder = {
    request: yield* acceptRequestOf(call, name, value),
    offer: {
      catalogId: to.catalog.id,
      sandbox,
      allowedBy: [allowsModel(principal, [name]) ? name : model.model],
      ...deadlineOf(value)
    },
    priced: {
      body,
      media: [{ bytes, mime: "application/json" }],
      metadata,
      webhook,
      models: [{ entry, amount: plan.hold }],
      leftOut: [],
      most: plan.hold
    },
    ending: plan.ending
  }
  return order
})

/** OpenAI's discounted completion windows, in hours. */
const completionWindows: ReadonlyMap<unknown, number> = new Map([
  ["2h", 2],
  ["8h", 8]
])

/** A response with a completion window gets an hour more than its window, because the window is a target. */
const deadlineOf = (value: unknown): Pick<AcceptedOffer, "deadline"> => {
  const hours = completionWindows.get(at(value, "background_options", "completion_window"))
  return hours === undefined ? {} : { deadline: Duration.hours(hours + 1) }
}

const decodeRequest = Schema.decodeUnknownEffect(Schema.Record(Schema.String, Schema.Unknown))

/** The parsed request. Strings too long to be shown may be `LongText`. */
const readRequest = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const document = documentOf(bytes)
  if (Result.isFailure(document)) return yield* problem(2002, document.failure)
  return yield* Effect.orDie(decodeRequest(yield* inSlices(() => valueWithTexts(document.success))))
})

/** Refuses long settings, because the vendor repeats them in the response, which would become too large to store. */
const settingsFaults = (value: Readonly<Record<string, unknown>>): ReadonlyArray<FieldFault> => {
  const { input: _, ...settings } = value
  let longBytes = 0
  const short = JSON.stringify(settings, function (this: Record<string, unknown>, name, shown) {
    // A `LongText` is written as something short, so its actual size is added
    const member = this[name]
    if (member instanceof LongText) longBytes += member.rawBytes
    return shown
  })
  const size = short.length + longBytes
  const detail = `Expected at most ${responseSettingsBytesMax} characters in the fields of a background response other than its input, got ${size}`
  return size > responseSettingsBytesMax ? [{ pointer: "#", detail }] : []
}
