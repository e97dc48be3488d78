import { Console, DateTime, Duration, Effect, Option, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import { HttpClient, HttpClientRequest } from "effect/http"
import type { EventType, PublishedEvent } from "../../client/index.ts"
import { deliveryHeaders, generateSecret } from "../../webhooks/Signature.ts"
import { Management } from "../Management.ts"
import { wrongUsage } from "../terminal/Fault.ts"
import { note, printEvent } from "../terminal/Output.ts"
import { Json } from "../terminal/Settings.ts"
import { plain } from "../terminal/Table.ts"
import { streamedEvents } from "./EventNames.ts"

/** Whether the receiver is on this machine. A public receiver needs an endpoint. */
const isLocal = (url: string): boolean => {
  const host = URL.parse(url)?.hostname ?? ""
  return (
    /^https?:/u.test(url) && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|.+\.localhost)$/u.test(host)
  )
}

const forwardTo = Flag.String("forward").pipe(
  Flag.withMetavar("URL"),
  Flag.withDescription("A receiver on this machine, such as http://localhost:3000/hook"),
  Flag.filter(isLocal, (it) => `Expected an address on this machine, got ${JSON.stringify(it)}`)
)

const receiverTimeout = Duration.seconds(30)
const answerCharacters = 200

const utf8 = new TextEncoder()

/** The delivery id, which is the same each time the event is forwarded. */
const deliveryIdOf = ({ id }: PublishedEvent): string => `whd_${id.replace(/^evt_/u, "")}`

/** Sends one event like a delivery, with the same bytes and headers. docs/reference/webhooks.md#delivery-request */
const forward = Effect.fnUntraced(function* (
  url: string,
  serviceName: string,
  secret: string,
  event: PublishedEvent
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
    Effect.timeout(receiverTimeout),
    // Sends only the headers of a delivery, without a trace
    Effect.provideService(HttpClient.TracerPropagationEnabled, false),
    Effect.flatMap((response) =>
      response.text.pipe(
        Effect.timeout(receiverTimeout),
        // The status decides, as in a delivery, whatever becomes of the body
        Effect.orElseSucceed(() => ""),
        Effect.map((answer) => ({ status: response.status, answer }))
      )
    ),
    Effect.catch((error) =>
      Effect.succeed({
        status: null,
        answer:
          error._tag === "TimeoutError" ? "no response in 30 seconds" : "nothing responds there"
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

const begin = Effect.fnUntraced(function* (
  url: string,
  events: ReadonlyArray<EventType>,
  secret: string
) {
  if (yield* Json) {
    return yield* Console.log(JSON.stringify({ forward: url, events: [...events], secret }))
  }
  return yield* Console.log(
    `Forwarding ${events.join(", ")} to ${url}; press Ctrl-C to stop\nSigned with ${secret}`
  )
})

/** docs/webhooks.md */
export const listen = Command.make(
  "listen",
  {
    forward: forwardTo,
    events: streamedEvents,
    secret: Flag.String("secret").pipe(
      Flag.withDescription("Sign with this secret (whsec_…) instead of a new one"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ events, forward: url, secret: given }) {
    const api = yield* Management
    const service = yield* api.call("getService", { as: "user" })
    const secret = Option.getOrElse(given, generateSecret)
    if (!secret.startsWith("whsec_")) {
      return yield* wrongUsage(
        "The secret does not start with whsec_",
        "Leave --secret out for a new one"
      )
    }
    yield* begin(url, events, secret)
    // The client calls this synchronously and does not wait for it
    const context = yield* Effect.context<never>()
    const onCut = () => Effect.runForkWith(context)(note("The stream ended; reconnecting"))
    return yield* api.use("user", (client) =>
      Stream.runForEach(client.events.listen({ types: events, onCut }), (event) =>
        forward(url, service.name, secret, event)
      )
    )
  })
).pipe(
  Command.withDescription(
    "Forward webhooks to a receiver on this machine, signed like those of the service"
  ),
  Command.provide(Management.layer)
)
