import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { UserChange } from "../../contract/manage/UsersApi.ts"
import { Management } from "../Management.ts"
import type { Answer } from "../Management.ts"
import { wrongUsage } from "../terminal/Fault.ts"
import { print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"
import { id, pageFlags, printList } from "./Lists.ts"

const user = id("user", "the id of a user")

const pairs = (it: Answer<"getUser">) =>
  [
    ["id", it.id],
    ["email", it.email],
    ["name", it.name],
    ["created", it.created_at],
    ["disabled", it.disabled],
    ["alert below", it.trigger_threshold],
    ["requests per minute", it.rate_limit_per_minute ?? "as configured"],
    ["running tasks", it.concurrent_tasks ?? "as configured"]
  ] as const

const list = Command.make("list", pageFlags, (page) =>
  printList((api, query) => api.call("listUsers", { as: "operator", query }), page, [
    { title: "ID", of: (it) => it.id },
    { title: "EMAIL", of: (it) => it.email },
    { title: "NAME", of: (it) => it.name },
    { title: "CREATED", of: (it) => it.created_at },
    { title: "DISABLED", of: (it) => (it.disabled ? "yes" : "") }
  ])
).pipe(Command.withDescription("List users, newest first"))

const show = Command.make(
  "show",
  { user },
  Effect.fnUntraced(function* ({ user }) {
    const api = yield* Management
    const request = { as: "operator", params: { id: user } } as const
    const found = yield* api.call("getUser", request)
    const wallet = yield* api.call("getUserWallet", request)
    yield* print(
      { user: found, wallet },
      details([
        ...pairs(found),
        ["available", wallet.available_balance],
        ["settled", wallet.settled_balance],
        ["held", wallet.held_balance]
      ])
    )
  })
).pipe(Command.withDescription("Show a user with limits and wallet"))

const create = Command.make(
  "create",
  {
    email: Argument.String("email").pipe(Argument.withDescription("An e-mail address")),
    name: Flag.String("name").pipe(Flag.withDescription("Shown name"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ email, name }) {
    const api = yield* Management
    const payload = { email, ...(Option.isSome(name) ? { name: name.value } : {}) }
    const made = yield* api.call("createUser", { as: "operator", payload })
    yield* print(made, details(pairs(made)))
  })
).pipe(Command.withDescription("Create a user without credits or keys"))

const change = Effect.fnUntraced(function* (id: string, payload: typeof UserChange.Encoded) {
  const api = yield* Management
  const changed = yield* api.call("updateUser", { as: "operator", params: { id }, payload })
  yield* print(changed, details(pairs(changed)))
})

const disable = Command.make("disable", { user }, ({ user }) =>
  change(user, { disabled: true })
).pipe(Command.withDescription("Refuse the user's keys and sessions"))

const enable = Command.make("enable", { user }, ({ user }) =>
  change(user, { disabled: false })
).pipe(Command.withDescription("Accept the user's keys again"))

/** A number, or `none` for the configured limit. */
const limitFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("NUMBER|none"),
    Flag.withDescription(`${description}; none for the configured limit`),
    Flag.filterMap(
      (it) => {
        if (it === "none") return Option.some(null)
        return /^\d{1,7}$/u.test(it) ? Option.some(Number(it)) : Option.none()
      },
      (it) => `Expected a whole number or none, got ${JSON.stringify(it)}`
    ),
    Flag.optional
  )

const limits = Command.make(
  "limits",
  {
    user,
    rate: limitFlag("rate-limit", "Inference requests per minute"),
    tasks: limitFlag("concurrent-tasks", "Unfinished tasks"),
    threshold: Flag.String("threshold").pipe(
      Flag.withDescription("Balance below which an alert is sent"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ rate, tasks, threshold, user }) {
    const body = {
      ...(Option.isSome(rate) ? { rate_limit_per_minute: rate.value } : {}),
      ...(Option.isSome(tasks) ? { concurrent_tasks: tasks.value } : {}),
      ...(Option.isSome(threshold) ? { trigger_threshold: threshold.value } : {})
    }
    if (Object.keys(body).length === 0) {
      return yield* wrongUsage(
        "No limit was given",
        "Give --rate-limit, --concurrent-tasks or --threshold; `users show` shows them"
      )
    }
    return yield* change(user, body)
  })
).pipe(Command.withDescription("Set a user's limits; omitted ones stay unchanged"))

/** docs/reference/keys-and-limits.md#users */
export const users = Command.make("users").pipe(
  Command.withDescription("Users (operator)"),
  Command.withSubcommands([list, show, create, disable, enable, limits]),
  Command.provide(Management.layer)
)
