import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { HttpServerError } from "effect/http"
import { Catalog } from "../../../src/catalog/Catalog.ts"
import { AppConfig } from "../../../src/config/Config.ts"
import { ApiKeyId, UserId } from "../../../src/domain/Ids.ts"
import { problem } from "../../../src/domain/Problem.ts"
import type { Problem } from "../../../src/domain/Problem.ts"
import { Metering } from "../../../src/passthrough/Metering.ts"
import type { CallEnd, HeldCall } from "../../../src/passthrough/Metering.ts"
import { Passthrough } from "../../../src/passthrough/Passthrough.ts"
import type { CallRequest } from "../../../src/passthrough/PassthroughCall.ts"
import { UpstreamCalls } from "../../../src/passthrough/UpstreamCalls.ts"
import type { Reached, UpstreamRequest } from "../../../src/passthrough/UpstreamCalls.ts"
import { Drain } from "../../../src/process/Drain.ts"
import { CallContents } from "../../../src/users/contents/CallContents.ts"

const body = new TextEncoder().encode('{"model":"gpt-4o","max_tokens":5,"messages":[]}')

const principal = {
  userId: UserId.make("019a0000-0000-7000-8000-000000000000"),
  apiKeyId: ApiKeyId.make("key_1"),
  scopes: ["inference"] as const,
  rotation: 0
}

const request: CallRequest = {
  method: "POST",
  target: { vendor: "openai", isShared: true, path: "/v1/chat/completions", query: "" },
  headers: {},
  traceId: "0".repeat(32),
  maxCost: Exit.succeed(undefined),
  authenticate: () => Effect.succeed(principal),
  mayStill: Effect.void,
  forgetKey: () => {},
  responses: {
    create: () => Effect.die("not asked"),
    replay: () => Effect.die("not asked"),
    previous: () => Effect.die("not asked")
  },
  withBody: (_route, _principal, use) => use({ bytes: body })
}

/** The store's side of a call, which is closed exactly once. */
const heldInto = (closed: Array<CallEnd>): HeldCall => ({
  hold: { isHeld: () => true, retake: (done) => done(true), drawn: false },
  raise: (_amount, onRaised) => onRaised("held"),
  close: (end) => {
    if (closed.length === 0) closed.push(end)
  },
  left: undefined
})

/** A call that has begun: its ends in the store, its exit if there is one, and a way to end it. */
const begun = (
  hold: (held: HeldCall) => Effect.Effect<HeldCall, Problem>,
  reach: (request: UpstreamRequest) => Effect.Effect<Reached>,
  authenticate = request.authenticate
) => {
  const closed: Array<CallEnd> = []
  const metering = Layer.succeed(
    Metering,
    Metering.of({
      hold: () => Effect.suspend(() => hold(heldInto(closed))),
      search: () => Effect.die("not asked"),
      find: () => Effect.die("not asked")
    })
  )
  const upstream = Layer.succeed(
    UpstreamCalls,
    UpstreamCalls.of({
      isSandbox: () => false,
      reach: (_provider, request) => Effect.suspend(() => reach(request)),
      accountFor: () => Effect.die("not asked"),
      accounts: Effect.succeed([])
    })
  )
  const notAsked = Effect.die("not asked")
  const contents = Layer.succeed(
    CallContents,
    CallContents.of({
      beginUnsafe: () => undefined,
      isKept: () => notAsked,
      keep: () => notAsked,
      find: () => notAsked,
      removeOld: notAsked
    })
  )
  return Effect.gen(function* () {
    const passthrough = yield* Passthrough
    const fiber = Effect.runFork(passthrough.call({ ...request, authenticate }))
    return {
      closed,
      exit: () => fiber.pollUnsafe(),
      end: (why: "left" | "failed") =>
        fiber.interruptUnsafe(
          fiber.id,
          why === "left" ? HttpServerError.ClientAbort.annotation : undefined
        )
    }
  }).pipe(
    Effect.provide(Passthrough.layer),
    Effect.provide([
      metering,
      upstream,
      contents,
      Catalog.layer,
      AppConfig.layerOf({}),
      Drain.layer
    ])
  )
}

const reached: Reached = {
  response: { status: 200, headers: {}, body: new TextEncoder().encode("{}") },
  accountId: "a"
}

const outcomes = (closed: ReadonlyArray<CallEnd>) => closed.map(({ outcome }) => outcome)

const broken = () => {
  throw new Error("broken")
}

describe("a call", () => {
  it.effect("reports a defect before the hold, and holds nothing", () =>
    Effect.gen(function* () {
      const { closed, exit } = yield* begun(broken, () => Effect.succeed(reached))
      const ended = exit()
      assert(ended !== undefined && Exit.isFailure(ended))
      assert.isTrue(Cause.hasDies(ended.cause))
      assert.isEmpty(closed)
    })
  )

  it.effect("reports a defect after the hold, and releases the hold", () =>
    Effect.gen(function* () {
      const { closed, exit } = yield* begun(Effect.succeed, broken)
      const ended = exit()
      assert(ended !== undefined && Exit.isFailure(ended))
      assert.isTrue(Cause.hasDies(ended.cause))
      assert.deepStrictEqual(outcomes(closed), ["released"])
    })
  )

  it.effect(
    "is refused with the reason why its key ended between its second read and its hold",
    () =>
      Effect.gen(function* () {
        const revoked = problem(1003, "This API key was revoked")
        let reads = 0
        const { closed, exit } = yield* begun(
          () => Effect.fail(problem(1003, "not this one")),
          () => assert.fail("sent without a hold"),
          () => Effect.suspend(() => ((reads += 1) < 3 ? Effect.succeed(principal) : revoked))
        )
        assert.deepStrictEqual(exit(), Exit.fail(revoked))
        assert.isEmpty(closed)
      })
  )

  it.effect("is released if its response cannot be relayed", () =>
    Effect.gen(function* () {
      const noHeaders = Object.assign(Object.create(null), {
        status: 200,
        body: reached.response.body
      })
      const { closed, exit } = yield* begun(Effect.succeed, () =>
        Effect.succeed({ response: noHeaders, accountId: "a" })
      )
      const ended = exit()
      assert(ended !== undefined && Exit.isFailure(ended))
      assert.isTrue(Cause.hasDies(ended.cause))
      assert.deepStrictEqual(outcomes(closed), ["released"])
    })
  )

  it.effect.each([
    ["left", true, "settled"],
    ["left", false, "released"],
    ["failed", true, "released"]
  ] as const)(
    "that is abandoned (%s), with its request sent: %s, is %s once, and the response is ignored",
    ([why, isSent, outcome]) =>
      Effect.gen(function* () {
        let answer: (response: Effect.Effect<Reached>) => void = () => {}
        let stops = 0
        const { closed, end, exit } = yield* begun(Effect.succeed, ({ watch }) =>
          Effect.callback((resume) => {
            answer = resume
            if (isSent) watch?.sent()
            return Effect.sync(() => {
              stops += 1
            })
          })
        )
        assert.isUndefined(exit())
        end(why)
        end(why)
        answer(Effect.succeed(reached))
        assert.strictEqual(stops, 1)
        const ended = exit()
        assert(ended !== undefined && Exit.isFailure(ended))
        assert.isTrue(Cause.hasInterruptsOnly(ended.cause))
        assert.deepStrictEqual(outcomes(closed), [outcome])
        const tokens = { inputTokens: 12, outputTokens: 0, counted: true }
        assert.deepStrictEqual(closed[0]?.usage, outcome === "settled" ? tokens : null)
      })
  )

  it.effect(
    "costs nothing if the upstream refused it and its client leaves before the next attempt",
    () =>
      Effect.gen(function* () {
        const { closed, end } = yield* begun(Effect.succeed, ({ watch }) => {
          watch?.sent()
          watch?.refused()
          return Effect.never
        })
        end("left")
        assert.deepStrictEqual(outcomes(closed), ["released"])
      })
  )

  it.effect("is not sent if its client leaves while it is being held", () =>
    Effect.gen(function* () {
      const { end, exit } = yield* begun(
        () => Effect.interruptible(Effect.never),
        () => assert.fail("sent without a hold")
      )
      end("left")
      assert.isDefined(exit())
    })
  )

  it.effect("is settled when it completes, and can no longer be abandoned", () =>
    Effect.gen(function* () {
      const { closed, end, exit } = yield* begun(Effect.succeed, () => Effect.succeed(reached))
      end("left")
      const ended = exit()
      assert(ended !== undefined && Exit.isSuccess(ended))
      assert.deepStrictEqual(outcomes(closed), ["settled"])
    })
  )
})
