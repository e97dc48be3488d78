import { Option, Schema } from "effect"
import type { Clock } from "effect"
import type { Hints } from "../process/signals/Hints.ts"
import { AccountChange } from "../vendors/accounts/AccountChange.ts"
import type { Accounts } from "../vendors/accounts/Accounts.ts"

const ChangeJson = Schema.fromJsonString(AccountChange)
const decodeChange = Schema.decodeUnknownOption(ChangeJson)
const encodeChange = Schema.encodeSync(ChangeJson)

/** Shares changes of circuits and pauses with all processes. ADR 0178. */
export const shareChanges = (
  accounts: Accounts["Service"],
  hints: typeof Hints.Service,
  clock: Clock.Clock
): void => {
  accounts.onChange((change) => hints.publishUnsafe("account", encodeChange(change)))
  hints.subscribe("account", (text) => {
    const change = decodeChange(text)
    if (Option.isSome(change)) accounts.apply(change.value, clock.currentTimeMillisUnsafe())
  })
}
