import { Effect } from "effect"
import { Flag, Prompt, TerminalCapabilities } from "effect/cli"
import { failed, wrongUsage } from "./Fault.ts"

export const yes = Flag.Boolean("yes").pipe(
  Flag.withAlias("y"),
  Flag.withDescription("Do it without asking"),
  Flag.withoutNegation,
  Flag.withDefault(false)
)

/** Asks before something that cannot be undone. Without a terminal `--yes` is required. */
export const confirm = Effect.fnUntraced(function* (message: string, isConfirmed: boolean) {
  if (isConfirmed) return
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  if (!canPrompt) return yield* wrongUsage(`${message} Nobody can be asked here`, "Add --yes")
  const isSure = yield* Prompt.run(Prompt.Confirm({ message }))
  if (!isSure) return yield* failed("Nothing was done")
})
