import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import { AccountAffinity } from "../../../src/passthrough/AccountAffinity.ts"
import { UpstreamCalls } from "../../../src/passthrough/UpstreamCalls.ts"
import { Accounts } from "../../../src/vendors/accounts/Accounts.ts"
import { Upstream, UpstreamFailure } from "../../../src/vendors/upstream/Upstream.ts"
import type {
  UpstreamResponse,
  UpstreamRequest
} from "../../../src/vendors/upstream/UpstreamExchange.ts"

const account = {
  id: "openai:one",
  provider: "openai",
  key: Redacted.make("sk-vendor"),
  baseUrl: "https://upstream.example",
  weight: 1
} as const

const anyAccount = Layer.succeed(
  AccountAffinity,
  AccountAffinity.of({ accountsFor: () => Effect.succeed(undefined) })
)

const request: UpstreamRequest = {
  method: "POST",
  path: "/v1/chat/completions",
  query: "",
  headers: [],
  body: new Uint8Array(),
  model: "gpt-4o",
  user: "019a0000-0000-7000-8000-000000000000",
  key: "key_1",
  route: builtInRoutes[0]!,
  watch: undefined
}

/** The response to the last request within the limit; the next is allowed after 20 s. */
const answer: UpstreamResponse = {
  status: 200,
  headers: { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s" },
  body: new Uint8Array()
}

describe("an account whose rate limit is used up", () => {
  it.effect("is not used after the response that says so, however long the call took", () =>
    Effect.gen(function* () {
      const upstream = Layer.succeed(
        Upstream,
        Upstream.of({
          send: () => Effect.delay(Effect.succeed(answer), "30 seconds")
        })
      )
      yield* Effect.gen(function* () {
        const calls = yield* UpstreamCalls
        const call = yield* Effect.forkChild(calls.reach("openai", request))
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual((yield* Fiber.join(call)).response, answer)
        const paused = yield* calls.accounts
        assert.deepStrictEqual(
          paused.map(({ pausedMillis }) => pausedMillis),
          [20_000]
        )
      }).pipe(
        Effect.provide(
          UpstreamCalls.layer.pipe(
            Layer.provide([upstream, anyAccount, Accounts.layer([account]), Catalog.layer])
          )
        )
      )
    })
  )
})

describe("a call that one account refuses for its rate, while the other cannot be reached", () => {
  it.effect("is answered with the vendor's own 429", () =>
    Effect.gen(function* () {
      const limited = { ...answer, status: 429 }
      const send = ({ id }: { readonly id: string }) =>
        id === account.id
          ? Effect.succeed(limited)
          : Effect.fail(new UpstreamFailure({ kind: "unsent", detail: "ECONNREFUSED" }))
      const upstream = Layer.succeed(
        Upstream,
        Upstream.of({
          send
        })
      )
      yield* Effect.gen(function* () {
        const calls = yield* UpstreamCalls
        const { accountId, response } = yield* calls.reach("openai", request)
        assert.deepStrictEqual([response.status, accountId], [429, account.id])
      }).pipe(
        Effect.provide(
          UpstreamCalls.layer.pipe(
            Layer.provide([
              upstream,
              anyAccount,
              Accounts.layer([
                { ...account, weight: 2 },
                { ...account, id: "openai:two" }
              ]),
              Catalog.layer
            ])
          )
        )
      )
    })
  )
})
