import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Management } from "../Management.ts"
import { print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"
import { eventNames } from "./EventNames.ts"
import { id, ofUser, pageFlags, printList, readerOf } from "./Lists.ts"

const Endpoint = Schema.Struct({
  id: Schema.String,
  url: Schema.String,
  events: Schema.Array(Schema.String),
  enabled: Schema.Boolean,
  secret_preview: Schema.String
})
const WithSecret = Schema.Struct({ ...Endpoint.fields, secret: Schema.String })
const Sent = Schema.Struct({ event_id: Schema.String, delivery_id: Schema.String })

const path = "/manage/v1/webhook-endpoints"
const endpoint = id("endpoint", "the id of an endpoint (whe_…)")
const pathOf = (endpointId: string) => `${path}/${encodeURIComponent(endpointId)}`

const list = Command.make("list", { ...pageFlags, ...ofUser }, ({ user, ...page }) =>
  printList({ path, ...readerOf(user), ...page }, Endpoint, [
    { title: "ID", of: (it) => it.id },
    { title: "URL", of: (it) => it.url },
    { title: "EVENTS", of: (it) => it.events.join(",") },
    { title: "ENABLED", of: (it) => (it.enabled ? "yes" : "no") },
    { title: "SECRET", of: (it) => it.secret_preview }
  ])
).pipe(Command.withDescription("List webhook endpoints"))

const withSecret = (it: typeof WithSecret.Type) =>
  details([
    ["id", it.id],
    ["url", it.url],
    ["events", it.events.join(",")],
    ["secret (shown this once)", it.secret]
  ])

const create = Command.make(
  "create",
  {
    url: Argument.String("url").pipe(
      Argument.withDescription(
        "A public https address; for a receiver on this machine use gateway listen"
      )
    ),
    events: eventNames,
    description: Flag.String("description").pipe(Flag.withDescription("Its purpose"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ description, events, url }) {
    const api = yield* Management
    const body = {
      url,
      events: [...events],
      ...(Option.isSome(description) ? { description: description.value } : {})
    }
    const request = { method: "POST", path, as: "user", body } as const
    const { document, value } = yield* api.read(request, WithSecret)
    yield* print(document, withSecret(value))
  })
).pipe(Command.withDescription("Create an endpoint; its secret is shown once"))

const rotate = Command.make(
  "rotate",
  { endpoint },
  Effect.fnUntraced(function* ({ endpoint }) {
    const api = yield* Management
    const request = { method: "POST", path: `${pathOf(endpoint)}/rotate`, as: "user" } as const
    const { document, value } = yield* api.read(request, WithSecret)
    yield* print(document, withSecret(value))
  })
).pipe(
  Command.withDescription("Give an endpoint a new secret; the old one also signs for 24 hours")
)

const test = Command.make(
  "test",
  { endpoint },
  Effect.fnUntraced(function* ({ endpoint }) {
    const api = yield* Management
    const request = { method: "POST", path: `${pathOf(endpoint)}/test`, as: "user" } as const
    const { document, value } = yield* api.read(request, Sent)
    yield* print(document, `Sent ${value.event_id} as ${value.delivery_id}`)
  })
).pipe(Command.withDescription("Send an endpoint a test event"))

/** docs/reference/webhooks.md#endpoints */
export const endpoints = Command.make("endpoints").pipe(
  Command.withDescription("Webhook endpoints"),
  Command.withSubcommands([list, create, rotate, test]),
  Command.provide(Management.layer)
)
