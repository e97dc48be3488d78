import { Effect } from "effect"
import { Command } from "effect/cli"
import { Management } from "../Management.ts"
import { print } from "../terminal/Output.ts"
import { details } from "../terminal/Table.ts"
import { ofUser, readBy } from "./Lists.ts"

/** docs/reference/wallet.md */
export const wallet = Command.make(
  "wallet",
  { ...ofUser },
  Effect.fnUntraced(function* ({ user }) {
    const api = yield* Management
    const value = yield* api.call("getWallet", readBy(user))
    const text = details([
      ["available", value.available_balance],
      ["settled", value.settled_balance],
      ["held", value.held_balance],
      ["alert below", value.trigger_threshold],
      ["state", value.state]
    ])
    yield* print(value, text)
  })
).pipe(Command.withDescription("Show the balance of a wallet"), Command.provide(Management.layer))
