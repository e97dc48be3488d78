import { Context, Effect, Option } from "effect"
import { HttpRouter } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { ChangesAccess } from "../../contract/Access.ts"
import type { Caller } from "../../contract/Access.ts"
import { problem } from "../../domain/Problem.ts"
import { previousSecret } from "../../users/ApiKeys.ts"

export const accessChangedBy = ({ annotations }: HttpApiEndpoint.Top) =>
  Context.getOption(annotations, ChangesAccess)

/**
 * Refuses changes of access by a replaced secret, and by a key with limits unless it rotates or revokes itself. Runs
 * before a stored response is replayed.
 */
export const authorizeAccessChange = Effect.fnUntraced(function* (
  endpoint: HttpApiEndpoint.Top,
  caller: Caller
) {
  const changed = accessChangedBy(endpoint)
  if (Option.isNone(changed) || caller._tag === "Operator" || caller.key === undefined) return
  const { apiKeyId, isLimited, isPrevious } = caller.key
  if (isPrevious) return yield* previousSecret
  const { id } = yield* HttpRouter.params
  if (isLimited && changed.value !== "endpoints" && id !== apiKeyId) return yield* limitedKey
})

const limitedKey = problem(
  1004,
  "An API key that has limits makes and changes no other keys, and ends no sessions"
)
