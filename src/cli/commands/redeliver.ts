import { Effect, Option, Schema } from "effect"
import { Command } from "effect/cli"
import { Management } from "../Management.ts"
import { CommandFault, failed, wrongUsage } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { table } from "../terminal/Table.ts"
import { id, readList } from "./Lists.ts"

const Delivery = Schema.Struct({
  id: Schema.String,
  endpoint_id: Schema.String,
  event_id: Schema.String,
  type: Schema.String,
  status: Schema.String
})

const again = Effect.fnUntraced(function* (deliveryId: string) {
  const api = yield* Management
  const path = `/manage/v1/webhook-deliveries/${encodeURIComponent(deliveryId)}/redeliver`
  return yield* api.read({ method: "POST", path, as: "user" }, Delivery)
})

/** The ids of an event and of its deliveries start with their creation time. */
const timeOf = (eventId: string): number | undefined => {
  const hex = /^evt_(?:test_)?([0-9a-f]{12})/u.exec(eventId)?.[1]
  return hex === undefined ? undefined : Number.parseInt(hex, 16)
}

const deliveriesMax = 1000

const deliveriesOf = Effect.fnUntraced(function* (eventId: string) {
  const millis = timeOf(eventId)
  if (millis === undefined) return yield* wrongUsage(`${eventId} is not the id of an event`)
  const query = {
    since: new Date(millis).toISOString(),
    until: new Date(millis + 1).toISOString()
  }
  const path = "/manage/v1/webhook-deliveries"
  const { rows } = yield* readList(
    { path, as: "user", query, limit: deliveriesMax, cursor: Option.none() },
    Delivery
  )
  const found = rows.filter(({ event_id }) => event_id === eventId).map((row) => row.id)
  if (found.length > 0) return found
  return yield* failed(
    `There is no delivery of ${eventId}`,
    "An event is delivered to endpoints that subscribed when it happened; the log is kept for 30 days"
  )
})

/** docs/reference/webhooks.md#redelivery */
export const redeliver = Command.make(
  "redeliver",
  { id: id("id", "the id of a delivery (whd_…) or of an event (evt_…)") },
  Effect.fnUntraced(function* ({ id: given }) {
    const ids = given.startsWith("evt_") ? yield* deliveriesOf(given) : [given]
    // A deleted endpoint must not prevent the others' deliveries
    const [sent, refused] = yield* Effect.partition(ids, (it) =>
      Effect.mapError(again(it), (fault) => ({ id: it, fault }))
    )
    const [first] = refused
    if (first !== undefined) {
      return yield* new CommandFault({
        code: first.fault.code ?? 1,
        remedy: first.fault.remedy,
        problem: first.fault.problem,
        message: [
          ...sent.map(({ value }) => `Sending ${value.id} again`),
          ...refused.map(({ fault, id: refusedId }) => `${refusedId}: ${fault.message}`)
        ].join("\n")
      })
    }
    yield* print(
      { data: sent.map(({ document }) => document) },
      table(
        sent.map(({ value }) => value),
        [
          { title: "DELIVERY", of: (it) => it.id },
          { title: "ENDPOINT", of: (it) => it.endpoint_id },
          { title: "EVENT", of: (it) => it.type },
          { title: "STATUS", of: (it) => it.status }
        ]
      )
    )
  })
).pipe(
  Command.withDescription("Send a delivery again, or all deliveries of an event"),
  Command.provide(Management.layer)
)
