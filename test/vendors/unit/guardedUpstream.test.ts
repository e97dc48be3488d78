import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import { builtInRoutes } from "../../../src/catalog/OpenRoutes.ts"
import { parseEgressAllow } from "../../../src/domain/network/EgressAllow.ts"
import type { AccountSetting } from "../../../src/domain/Provider.ts"
import { EgressGuard } from "../../../src/egress/EgressGuard.ts"
import { guardedConnector } from "../../../src/Gateway.ts"
import { Upstream } from "../../../src/vendors/upstream/Upstream.ts"
import { json, mockVendor } from "../../support/mockVendors.ts"

const guard = Layer.unwrap(
  Effect.map(Effect.fromResult(parseEgressAllow("")), (allow) => EgressGuard.layer({ allow }))
)
const upstream = (connector: Layer.Layer<never, unknown>) =>
  Upstream.layer({ timeout: Duration.seconds(2) }).pipe(Layer.provide(connector))

const request = {
  method: "POST" as const,
  path: "/v1/chat/completions",
  query: "",
  headers: [],
  body: Buffer.from("{}"),
  model: "chat-1",
  user: "user",
  key: "key",
  route: builtInRoutes[0]!,
  watch: undefined
}

const vendor = Effect.acquireRelease(
  Effect.promise(() => mockVendor((_, response) => json(response, 200, {}))),
  ({ close }) => Effect.promise(close)
)

const sendTo = (baseUrl: string, guarded: boolean) =>
  Effect.flatMap(Upstream, ({ send }) =>
    send(
      {
        id: "acme:one",
        provider: "acme",
        key: Redacted.make("sk-secret-of-acme"),
        baseUrl,
        weight: 1,
        ...(guarded ? { guarded } : {})
      } satisfies AccountSetting,
      request
    )
  )

/** docs/catalog.md#vendors: only the operator's variables may name an address that is not public. */
describe("an account with a base from a catalog file", () => {
  it.live("does not reach this machine, unlike one with a base from the operator", () =>
    Effect.gen(function* () {
      const { origin, seen } = yield* vendor
      for (const base of [origin, origin.replace("127.0.0.1", "localhost")]) {
        const failure = yield* Effect.flip(sendTo(base, true))
        assert.strictEqual(failure.kind, "unsent")
      }
      assert.lengthOf(seen, 0)
      assert.strictEqual((yield* sendTo(origin, false)).status, 200)
      assert.lengthOf(seen, 1)
    }).pipe(Effect.scoped, Effect.provide(upstream(guardedConnector.pipe(Layer.provide(guard)))))
  )

  it.live("reaches nothing without the guard", () =>
    Effect.gen(function* () {
      const { origin, seen } = yield* vendor
      const failure = yield* Effect.flip(sendTo(origin, true))
      assert.strictEqual(failure.kind, "unsent")
      assert.lengthOf(seen, 0)
    }).pipe(Effect.scoped, Effect.provide(upstream(Layer.empty)))
  )
})
