import { Effect } from "effect"
import { Flag, Prompt, TerminalCapabilities } from "effect/cli"
import { failed, wrongUsage } from "./Fault.ts"

export const yes = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDescription("Do not ask for confirmation"),
  Flag.withoutNegation,
  Flag.withDefault(false)
)

/** Asks for confirmation of something that cannot be undone. Without a terminal, `--yes` is required. */
export const confirm = Effect.fnUntraced(function* (message: string, isConfirmed: boolean) {
  if (isConfirmed) return
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  if (!canPrompt)
    return yield* wrongUsage(`${message} Cannot ask for confirmation here`, "Add --yes")
  const isSure = yield* Prompt.run(Prompt.Confirm({ message }))
  if (!isSure) return yield* failed("Nothing was changed")
})
