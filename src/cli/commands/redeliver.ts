import { Effect, Option } from "effect"
import { Command } from "effect/cli"
import { Management } from "../Management.ts"
import { CommandFault, failed, wrongUsage } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { table } from "../terminal/Table.ts"
import { id, readList } from "./Lists.ts"

const again = (id: string) =>
  Effect.flatMap(Management, (api) =>
    api.call("redeliverWebhookDelivery", { as: "user", params: { id } })
  )

/** The creation time in the id of an event, with which the ids of its deliveries start, too. */
const timeOf = (eventId: string): number | undefined => {
  const hex = /^evt_(?:test_)?([0-9a-f]{12})/u.exec(eventId)?.[1]
  return hex === undefined ? undefined : Number.parseInt(hex, 16)
}

const deliveriesMax = 1000

const deliveriesOf = Effect.fnUntraced(function* (eventId: string) {
  const millis = timeOf(eventId)
  if (millis === undefined) {
    return yield* wrongUsage(
      `${eventId} is not the id of an event`,
      "Give the whole id: evt_ and 32 digits"
    )
  }
  const period = {
    since: new Date(millis).toISOString(),
    until: new Date(millis + 1).toISOString()
  }
  const { data } = yield* readList(
    (api, query) =>
      api.call("listWebhookDeliveries", { as: "user", query: { ...query, ...period } }),
    { limit: deliveriesMax, cursor: Option.none() }
  )
  const found = data.filter(({ event_id }) => event_id === eventId).map((row) => row.id)
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
    // A deleted endpoint must not stop the deliveries to others
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
          ...sent.map(({ id }) => `Sending ${id} again`),
          ...refused.map(({ fault, id: refusedId }) => `${refusedId}: ${fault.message}`)
        ].join("\n")
      })
    }
    yield* print(
      { data: sent },
      table(sent, [
        { title: "DELIVERY", of: (it) => it.id },
        { title: "ENDPOINT", of: (it) => it.webhook_url ?? it.endpoint_id },
        { title: "EVENT", of: (it) => it.type },
        { title: "STATUS", of: (it) => it.status }
      ])
    )
  })
).pipe(
  Command.withDescription("Send a delivery again, or all deliveries of an event"),
  Command.provide(Management.layer)
)
