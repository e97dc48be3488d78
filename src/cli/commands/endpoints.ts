import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { WebhookFormat } from "../../domain/Webhook.ts"
import { Management } from "../Management.ts"
import type { Answer } from "../Management.ts"
import { print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"
import { endpointEvents } from "./EventNames.ts"
import { id, ofUser, pageFlags, printList, readBy } from "./Lists.ts"

const endpoint = id("endpoint", "the id of an endpoint (whe_…)")

const list = Command.make("list", { ...pageFlags, ...ofUser }, ({ user, ...page }) =>
  printList((api, query) => api.call("listWebhookEndpoints", readBy(user, query)), page, [
    { title: "ID", of: (it) => it.id },
    { title: "URL", of: (it) => it.url },
    { title: "EVENTS", of: (it) => it.events.join(",") },
    { title: "ENABLED", of: (it) => (it.enabled ? "yes" : "no") },
    { title: "SECRET", of: (it) => it.secret_preview }
  ])
).pipe(Command.withDescription("List webhook endpoints"))

const withSecret = (it: Answer<"createWebhookEndpoint">) =>
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
    events: endpointEvents,
    format: Flag.Literals("format", WebhookFormat.literals).pipe(
      Flag.withDescription("openai: events that OpenAI also has use its envelope"),
      Flag.withDefault("gateway")
    ),
    description: Flag.String("description").pipe(Flag.withDescription("Its purpose"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ description, events, format, url }) {
    const api = yield* Management
    const payload = {
      url,
      events: [...events],
      format,
      ...(Option.isSome(description) ? { description: description.value } : {})
    }
    const made = yield* api.call("createWebhookEndpoint", { as: "user", payload })
    yield* print(made, withSecret(made))
  })
).pipe(Command.withDescription("Create an endpoint; its secret is shown once"))

const rotate = Command.make(
  "rotate",
  { endpoint },
  Effect.fnUntraced(function* ({ endpoint }) {
    const api = yield* Management
    const params = { id: endpoint }
    const rotated = yield* api.call("rotateWebhookEndpoint", { as: "user", params })
    yield* print(rotated, withSecret(rotated))
  })
).pipe(
  Command.withDescription("Give an endpoint a new secret; the old one also signs for 24 hours")
)

const test = Command.make(
  "test",
  { endpoint },
  Effect.fnUntraced(function* ({ endpoint }) {
    const api = yield* Management
    const params = { id: endpoint }
    const sent = yield* api.call("testWebhookEndpoint", { as: "user", params })
    yield* print(sent, `Sent ${sent.event_id} as ${sent.delivery_id}`)
  })
).pipe(Command.withDescription("Send an endpoint a test event"))

/** docs/reference/webhooks.md#endpoints */
export const endpoints = Command.make("endpoints").pipe(
  Command.withDescription("Webhook endpoints"),
  Command.withSubcommands([list, create, rotate, test]),
  Command.provide(Management.layer)
)
