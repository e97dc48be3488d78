import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ApiKeyId, UserId } from "../../../src/domain/Ids.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import type { CallEnd } from "../../../src/passthrough/Metering.ts"
import { Passthrough } from "../../../src/passthrough/Passthrough.ts"
import type { GivenUp, Relayed } from "../../../src/passthrough/Passthrough.ts"
import { UpstreamCalls } from "../../../src/passthrough/UpstreamCalls.ts"
import type { ReachHandlers, UpstreamRequest } from "../../../src/passthrough/UpstreamCalls.ts"
import { Drain } from "../../../src/process/Drain.ts"

const body = new TextEncoder().encode('{"model":"gpt-4o","max_tokens":5,"messages":[]}')

/** A call without a fiber, with its results. */
const forwarded = (
  draw: () => boolean,
  reach: (end: ReachHandlers, request: UpstreamRequest) => () => void
): Effect.Effect<{
  readonly results: ReadonlyArray<Exit.Exit<unknown, unknown>>
  readonly closed: ReadonlyArray<CallEnd>
  readonly giveUp: (why: GivenUp) => void
}> => {
  const closed: Array<CallEnd> = []
  const metering = Layer.succeed(
    Metering,
    Metering.of({
      holdOf: () => ({ isHeld: () => true, retake: (done) => done(true), drawn: false }),
      drawUnsafe: () =>
        draw() ? { close: (end) => void closed.push(end), left: undefined } : undefined,
      openUnsafe: () => () => {},
      closeUnsafe: (end) => void closed.push(end),
      search: () => Effect.die("not asked"),
      find: () => Effect.die("not asked")
    })
  )
  const upstream = Layer.succeed(
    UpstreamCalls,
    UpstreamCalls.of({
      isSandbox: () => false,
      reach: () => Effect.die("not asked"),
      reachUnsafe: (_provider, request, _now, end) => reach(end, request),
      accounts: Effect.succeed([])
    })
  )
  return Effect.gen(function* () {
    const passthrough = yield* Passthrough
    const to = yield* passthrough.resolve("openai", "POST", "/v1/chat/completions")
    const results: Array<Exit.Exit<unknown, unknown>> = []
    const principal = {
      userId: UserId.make("019a0000-0000-7000-8000-000000000000"),
      apiKeyId: ApiKeyId.make("key_1"),
      scopes: ["inference"] as const,
      rotation: 0
    }
    const giveUp = passthrough.forwardUnsafe(
      { principal, to, query: "", headers: {}, body, traceId: "0".repeat(32) },
      0,
      {
        onResponse: (relayed: Relayed) => void results.push(Exit.succeed(relayed)),
        onRest: (rest) => void results.push(Effect.runSyncExit(rest))
      }
    )
    return { results, closed, giveUp }
  }).pipe(
    Effect.provide(Passthrough.layer),
    Effect.provide([metering, upstream, Catalog.layer, AppConfig.layerOf({}), Drain.layer]),
    Effect.orDie
  )
}

const answer = { status: 200, headers: {}, body: new TextEncoder().encode("{}") }

describe("a call without a fiber", () => {
  it.effect("a defect before the hold is reported, and nothing is held", () =>
    Effect.gen(function* () {
      const { closed, results } = yield* forwarded(
        () => {
          throw new Error("broken")
        },
        () => () => {}
      )
      assert.lengthOf(results, 1)
      assert(results[0] !== undefined && Exit.isFailure(results[0]))
      assert.isTrue(Cause.hasDies(results[0].cause))
      assert.lengthOf(closed, 0)
    })
  )

  it.effect("a defect after the hold is reported, and the hold released", () =>
    Effect.gen(function* () {
      const { closed, results } = yield* forwarded(
        () => true,
        () => {
          throw new Error("broken")
        }
      )
      assert.lengthOf(results, 1)
      assert(results[0] !== undefined && Exit.isFailure(results[0]))
      assert.isTrue(Cause.hasDies(results[0].cause))
      assert.deepStrictEqual(
        closed.map(({ outcome }) => outcome),
        ["released"]
      )
    })
  )

  it.effect.each([
    ["left", true, "settled"],
    ["left", false, "released"],
    ["failed", true, "released"]
  ] as const)(
    "when given up (%s) with the request out: %s, it is %s once, and the response is ignored",
    ([why, isSent, outcome]) =>
      Effect.gen(function* () {
        let end: ReachHandlers | undefined
        let stops = 0
        const { closed, giveUp, results } = yield* forwarded(
          () => true,
          (it, { watch }) => {
            end = it
            if (isSent) watch?.sent()
            return () => {
              stops += 1
              it.onRest(Effect.die("aborted"))
            }
          }
        )
        giveUp(why)
        giveUp(why)
        end?.onResponse({ response: answer, accountId: "a" })
        assert.strictEqual(stops, 2)
        assert.lengthOf(results, 0)
        assert.deepStrictEqual(
          closed.map((it) => it.outcome),
          [outcome]
        )
        const tokens = { inputTokens: 12, outputTokens: 0, counted: true }
        assert.deepStrictEqual(closed[0]?.usage, outcome === "settled" ? tokens : null)
      })
  )

  it.effect(
    "a call that the upstream refused costs nothing, whoever leaves before the next try",
    () =>
      Effect.gen(function* () {
        const { closed, giveUp } = yield* forwarded(
          () => true,
          (_, { watch }) => {
            watch?.sent()
            watch?.refused()
            return () => {}
          }
        )
        giveUp("left")
        assert.deepStrictEqual(
          closed.map(({ outcome }) => outcome),
          ["released"]
        )
      })
  )

  it.effect("when completed, it is settled, and can no longer be abandoned", () =>
    Effect.gen(function* () {
      const { closed, giveUp, results } = yield* forwarded(
        () => true,
        (end) => {
          end.onResponse({ response: answer, accountId: "a" })
          return () => assert.fail("stopped behind its end")
        }
      )
      giveUp("left")
      assert.lengthOf(results, 1)
      assert.deepStrictEqual(
        closed.map(({ outcome }) => outcome),
        ["settled"]
      )
    })
  )
})
