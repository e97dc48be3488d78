import { Effect, Exit, Option } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import type { ManageReplays } from "../../users/ManageReplays.ts"
import type { Caller } from "../server/Authentication.ts"
import { readIdempotencyKey } from "../server/IdempotencyKey.ts"

/**
 * Gives the first answer again to a POST of the management API with the same `Idempotency-Key`.
 * Once begun, the first request is brought to its end even if its client goes away. Contract 2.
 */
export const replayed = <E, R>(
  replays: ManageReplays["Service"],
  caller: Caller,
  handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    if (request.method !== "POST" || request.headers["idempotency-key"] === undefined) {
      return yield* handled
    }
    // A body that cannot be read is a defect here and told as a problem by `rescue`
    const bytes = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
    const key = yield* readIdempotencyKey(request, bytes)
    if (Option.isNone(key)) return yield* handled
    const claim = yield* replays.claim({ caller: nameOf(caller), ...key.value })
    if (claim._tag === "Replayed") {
      return HttpServerResponse.text(claim.response.body, {
        status: claim.response.status,
        contentType: "application/json",
        headers: { "idempotency-replayed": "true" }
      })
    }
    return yield* Effect.onExit(handled, (exit) =>
      claim.complete(
        Exit.map(exit, (response) => ({ status: response.status, body: textOf(response) }))
      )
    ).pipe(Effect.uninterruptible)
  })

/** Whose keys and bodies. */
export const nameOf = (caller: Caller): string =>
  caller._tag === "Operator" ? "operator" : caller.principal.userId

/** HttpApi answers with whole bodies only. */
const textOf = ({ body }: HttpServerResponse.HttpServerResponse): string =>
  body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
