import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Management } from "../Management.ts"
import { note, print } from "../terminal/Output.ts"
import { id } from "./Lists.ts"
import { requestKey } from "./RequestKey.ts"

/** docs/reference/wallet.md#top-ups-and-adjustments */
export const topUp = Command.make(
  "top-up",
  {
    user: id("user", "the id of a user"),
    amount: Argument.String("amount").pipe(
      Argument.withDescription("Credits, such as 100 or 12.50"),
      Argument.filter(
        (it) => /^\d{1,15}(\.\d{1,2})?$/u.test(it),
        () => "Expected an amount such as 12.50"
      )
    ),
    operation_id: requestKey(
      "operation-id",
      "Identifies this top-up: repeating it has no further effect."
    ),
    note: Flag.String("note").pipe(Flag.withDescription("Shown in the ledger"), Flag.optional)
  },
  Effect.fnUntraced(function* ({ amount, note: text, operation_id, user }) {
    const api = yield* Management
    const wallet = yield* api
      .call("topUp", {
        as: "operator",
        params: { id: user },
        idempotencyKey: operation_id,
        payload: { amount, ...(Option.isSome(text) ? { note: text.value } : {}) }
      })
      .pipe(
        Effect.tapError(({ isUnclear }) =>
          isUnclear === true
            ? note(`Repeat the command with --operation-id ${operation_id} to book it at most once`)
            : Effect.void
        )
      )
    yield* print(
      { operation_id, wallet },
      `Topped up ${user} with ${amount} credits (operation ${operation_id}); available: ${wallet.available_balance}`
    )
  })
).pipe(
  Command.withDescription(
    "Add credits to a user's wallet (operator); booked once for each operation id"
  ),
  Command.provide(Management.layer)
)
