import { Duration, Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { Management } from "../Management.ts"
import type { Answer } from "../Management.ts"
import { confirm, yes } from "../terminal/Confirm.ts"
import { print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"
import { id, ofUser, pageFlags, printList, readBy } from "./Lists.ts"

const key = id("key", "the id of a key (key_…), not the key itself")

const list = Command.make("list", { ...pageFlags, ...ofUser }, ({ user, ...page }) =>
  printList((api, query) => api.call("listApiKeys", readBy(user, query)), page, [
    { title: "ID", of: (it) => it.id },
    { title: "NAME", of: (it) => it.name },
    { title: "KEY", of: (it) => it.preview },
    { title: "SCOPES", of: (it) => it.scopes.join(",") },
    { title: "LAST USED", of: (it) => it.last_used_at },
    { title: "EXPIRES", of: (it) => it.expires_at }
  ])
).pipe(Command.withDescription("List API keys, newest first"))

const withSecret = (it: Answer<"createApiKey">) =>
  details([
    ["id", it.id],
    ["name", it.name],
    ["scopes", it.scopes.join(",")],
    ["expires", it.expires_at],
    ["key (shown this once)", it.key]
  ])

const create = Command.make(
  "create",
  {
    name: Flag.String("name").pipe(Flag.withDescription("Its purpose")),
    scopes: Flag.Literals("scope", ["inference", "manage"]).pipe(
      Flag.withDescription("A scope; may be repeated. Default: inference"),
      Flag.atLeast(0)
    ),
    expires: Flag.String("expires-at").pipe(
      Flag.withDescription("Expiry, such as 2027-01-31T00:00:00Z"),
      Flag.optional
    ),
    ...ofUser
  },
  Effect.fnUntraced(function* ({ expires, name, scopes, user }) {
    const api = yield* Management
    const payload = {
      name,
      ...(scopes.length === 0 ? {} : { scopes: [...scopes] }),
      ...(Option.isSome(expires) ? { expires_at: expires.value } : {})
    }
    const made = yield* Option.match(user, {
      onNone: () => api.call("createApiKey", { as: "user", payload }),
      onSome: (id) => api.call("createUserApiKey", { as: "operator", params: { id }, payload })
    })
    yield* print(made, withSecret(made))
  })
).pipe(Command.withDescription("Create an API key; the key is shown once"))

const rotate = Command.make(
  "rotate",
  {
    key,
    grace: Flag.String("grace").pipe(
      Flag.withMetavar("DURATION"),
      Flag.withDescription(
        "How long the old secret stays valid, such as 0 seconds. Default: 24 hours"
      ),
      Flag.withSchema(Schema.DurationFromString),
      Flag.withDefault(Duration.hours(24))
    )
  },
  Effect.fnUntraced(function* ({ grace, key }) {
    const api = yield* Management
    const payload = { grace_seconds: Math.round(Duration.toSeconds(grace)) }
    const rotated = yield* api.call("rotateApiKey", { as: "either", params: { id: key }, payload })
    yield* print(rotated, withSecret(rotated))
  })
).pipe(Command.withDescription("Give a key a new secret, which is shown once"))

const revoke = Command.make(
  "revoke",
  { key, yes },
  Effect.fnUntraced(function* ({ key, yes }) {
    const api = yield* Management
    yield* confirm(`Revoke ${key}? Programs that use it will be refused at once.`, yes)
    yield* api.call("revokeApiKey", { as: "user", params: { id: key } })
    yield* print({ id: key, revoked: true }, `Revoked ${key}`)
  })
).pipe(Command.withDescription("Revoke a key permanently"))

/** docs/reference/keys-and-limits.md#api-keys */
export const keys = Command.make("keys").pipe(
  Command.withDescription("API keys"),
  Command.withSubcommands([list, create, rotate, revoke]),
  Command.provide(Management.layer)
)
