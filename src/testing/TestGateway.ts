import { Context, Effect, Layer, Option } from "effect"
import type { Scope } from "effect"
import { HttpEffect } from "effect/http"
import type { HttpServerRequest } from "effect/http"
import { AppConfig } from "../config/Config.ts"
import { make as makeCredits, microPerCredit } from "../domain/Credits.ts"
import * as Routes from "../http/Routes.ts"
import { ApiKeys } from "../users/ApiKeys.ts"
import { Users } from "../users/Users.ts"
import { Wallet } from "../wallet/Wallet.ts"

/** A gateway in the process of a test, with one user who has 1000 credits and a key. */
export class TestGateway extends Context.Service<
  TestGateway,
  {
    /** The user's key, with the scopes `inference` and `manage`. */
    readonly key: string
    /** As the global `fetch`, without a socket; paths are relative to the gateway's address. */
    readonly fetch: (path: string, init?: RequestInit) => Effect.Effect<Response>
  }
>()("gateway/testing/TestGateway") {
  static readonly layer = Layer.effect(
    TestGateway,
    Effect.gen(function* () {
      const app = yield* Routes.toHttpEffect
      const { baseUrl } = yield* AppConfig
      const key = yield* makeKey
      // Handlers get the context of the test, and its clock with it
      const handle = HttpEffect.toWebHandlerWith<
        ApiKeys,
        ApiKeys | HttpServerRequest.HttpServerRequest | Scope.Scope
      >(yield* Effect.context<ApiKeys>())(app)
      return {
        key,
        fetch: (path, init) =>
          Effect.promise(() => handle(new Request(new URL(path, baseUrl), init)))
      }
    })
  )
}

const credits = 1000n

const makeKey = Effect.gen(function* () {
  const user = yield* (yield* Users).create({
    email: "test@example.com",
    name: Option.none(),
    password: Option.none()
  })
  yield* (yield* Wallet).topUp({
    userId: user.id,
    amount: makeCredits(credits * microPerCredit),
    operationId: `top_up:${user.id}:test`,
    note: Option.none(),
    traceId: "0".repeat(32)
  })
  const { key } = yield* (yield* ApiKeys).create({
    userId: user.id,
    name: "test",
    scopes: ["inference", "manage"],
    expiresAt: Option.none()
  })
  return key
})
