import { Console, DateTime, Duration, Effect, Option, Schedule, Schema, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { HttpClient, HttpClientRequest } from "effect/http"
import { deliveryHeaders, generateSecret } from "../../webhooks/Signature.ts"
import { eventTexts } from "../FollowTask.ts"
import { foreign, Management } from "../Management.ts"
import { CommandFault, wrongUsage } from "../terminal/Fault.ts"
import { note, printEvent } from "../terminal/Output.ts"
import { Json } from "../terminal/Settings.ts"
import { plain } from "../terminal/Table.ts"
import { eventNames } from "./EventNames.ts"

const Streamed = Schema.fromJsonString(
  Schema.Struct({
    type: Schema.Literal("event"),
    data: Schema.Struct({
      id: Schema.String,
      type: Schema.String,
      created_at: Schema.String,
      task_id: Schema.NullOr(Schema.String),
      body: Schema.String
    })
  })
)
type Event = (typeof Streamed.Type)["data"]

/** A receiver on this machine; a public one is an endpoint. */
const isLocal = (url: string): boolean => {
  const host = URL.parse(url)?.hostname ?? ""
  return (
    /^https?:/u.test(url) && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|.+\.localhost)$/u.test(host)
  )
}

const forwardTo = Flag.String("forward").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("Receiver on this machine, such as http://localhost:3000/hook"),
  Flag.filter(isLocal, (it) => `Expected an address of this machine, got ${JSON.stringify(it)}`)
)

const receiverTimeout = Duration.seconds(30)
const answerCharacters = 200

const utf8 = new TextEncoder()

/** The same delivery id each time that an event is forwarded. */
const deliveryIdOf = ({ id }: Event): string => `whd_${id.replace(/^evt_/u, "")}`

/** Sends one event as a delivery: same bytes, same headers. docs/reference/webhooks.md#delivery-request */
const forward = Effect.fnUntraced(function* (
  url: string,
  serviceName: string,
  secret: string,
  event: Event
) {
  const http = yield* HttpClient.HttpClient
  const body = utf8.encode(event.body)
  const now = DateTime.toEpochMillis(yield* DateTime.now)
  const parts = { deliveryId: deliveryIdOf(event), timestampSeconds: Math.floor(now / 1000), body }
  const { "Content-Type": type, ...headers } = deliveryHeaders(serviceName, parts, secret)
  const request = HttpClientRequest.post(url, { headers }).pipe(
    HttpClientRequest.bodyUint8Array(body, type)
  )
  const answered = http.execute(request).pipe(
    // The headers of a delivery, and no trace
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.flatMap((response) =>
      Effect.map(response.text, (text) => ({ status: response.status, answer: text }))
    ),
    Effect.timeout(receiverTimeout),
    Effect.catch((error) =>
      Effect.succeed({
        status: null,
        answer: error._tag === "TimeoutError" ? "no answer in 30 seconds" : "nothing answers there"
      })
    )
  )
  const { answer, status } = yield* answered
  const millis = DateTime.toEpochMillis(yield* DateTime.now) - now
  const { created_at, id, task_id, type: name } = event
  yield* printEvent(
    {
      event_id: id,
      delivery_id: parts.deliveryId,
      type: name,
      created_at,
      task_id,
      status,
      duration_ms: millis,
      answer: answer.slice(0, 16_384)
    },
    `${created_at}  ${name}  ${id}  ->  ${status ?? "failed"} in ${millis} ms  ${plain(answer.slice(0, answerCharacters))}`
  )
})

/** Ids of forwarded events that are kept: a stream that is opened again begins with the latest of them. */
const seenMax = 10_000

/** As long as somebody listens: the service may restart meanwhile. */
const patience = Schedule.spaced("2 seconds")

const decode = Schema.decodeUnknownEffect(Streamed)

const begin = Effect.fnUntraced(function* (
  url: string,
  events: ReadonlyArray<string>,
  secret: string
) {
  if (yield* Json) {
    return yield* Console.log(JSON.stringify({ forward: url, events: [...events], secret }))
  }
  return yield* Console.log(
    `Forwarding ${events.join(", ")} to ${url}; Ctrl-C ends it\nSigned with ${secret}`
  )
})

/** docs/webhooks.md */
export const listen = Command.make(
  "listen",
  {
    forward: forwardTo,
    events: eventNames,
    secret: Flag.String("secret").pipe(
      Flag.withDescription("Sign with this secret (whsec_…), not with a new one"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ events, forward: url, secret: given }) {
    const api = yield* Management
    const Service = Schema.Struct({ name: Schema.String })
    const service = yield* api.read({ path: "/manage/v1/service", as: "anyone" }, Service)
    const secret = Option.getOrElse(given, generateSecret)
    if (!secret.startsWith("whsec_")) {
      return yield* wrongUsage(
        "The secret does not begin with whsec_",
        "Leave --secret out for a new one"
      )
    }
    let since = DateTime.formatIso(yield* DateTime.now)
    const seen = new Set<string>()
    const isNew = ({ id }: Event) => !seen.has(id)
    const stream = Stream.unwrap(
      Effect.sync(() => eventTexts("/manage/v1/events", { events: events.join(","), since }))
    ).pipe(
      Stream.mapEffect((text) =>
        Effect.mapError(decode(text), () => foreign(api.url, "an event has another form"))
      ),
      Stream.map(({ data }) => data),
      Stream.filter(isNew),
      Stream.tap((event) =>
        Effect.sync(() => {
          seen.add(event.id)
          const [oldest] = seen
          if (seen.size > seenMax && oldest !== undefined) seen.delete(oldest)
          since = event.created_at
        })
      ),
      Stream.runForEach((event) => forward(url, service.value.name, secret, event))
    )
    yield* begin(url, events, secret)
    // A stream that ends was cut: the service stops, or the key has ended, which the next request says
    return yield* Effect.andThen(stream, Effect.fail(cut)).pipe(
      Effect.tapError(() => note("The stream ended; connecting again")),
      Effect.retry({
        while: ({ code, problem }) => code === undefined && problem === undefined,
        schedule: patience
      })
    )
  })
).pipe(
  Command.withDescription(
    "Forward webhooks to a receiver on this machine, signed as the service signs them"
  ),
  Command.provide(Management.layer)
)

const cut = new CommandFault({ message: "The stream of events ended" })
