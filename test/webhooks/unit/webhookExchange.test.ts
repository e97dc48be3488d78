import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Socket } from "node:net"
import type { Dispatcher } from "undici"
import type { AttemptOutcome } from "../../../src/domain/Webhook.ts"
import { WebhookExchange } from "../../../src/webhooks/WebhookExchange.ts"

/** An exchange on a connection that `abort` destroys, like undici's, which closes one event-loop turn later. */
const underWay = (doesClose = true) => {
  let isClosed = false
  const socket = new Socket()
  // A socket with a handle: `closed` is true at once, and the event comes when the handle has closed
  socket._destroy = (error, done) => {
    done(error)
    if (doesClose) setImmediate(() => socket.emit("close", false))
  }
  socket.once("close", () => (isClosed = true))
  const controller: Dispatcher.DispatchController = {
    aborted: false,
    paused: false,
    reason: null,
    abort: () => void socket.destroy(),
    pause: () => {},
    resume: () => {}
  }
  const exchange = new WebhookExchange()
  exchange.peer = { socket, remoteAddress: "192.0.2.1" }
  /** The outcome, and whether its connection was closed by then. */
  const settled = new Promise<readonly [AttemptOutcome, boolean]>((resolve) =>
    exchange.onSettled((outcome) => resolve([outcome, isClosed]))
  )
  exchange.onRequestStart(controller)
  return { controller, exchange, socket, settled: Effect.promise(() => settled) }
}

describe("an attempt is over, and its place free,", () => {
  it.effect("when the response is complete, if the connection is free for the next", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, settled } = underWay()
      exchange.onResponseStart(controller, 200, {})
      exchange.onResponseEnd()
      const [outcome, isClosed] = yield* settled
      assert.deepStrictEqual([outcome.status, isClosed], [200, false])
      socket.destroy()
    })
  )

  it.effect("when the connection is closed, if it closes after the response", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, settled } = underWay()
      exchange.onResponseStart(controller, 200, { connection: "close" })
      exchange.onResponseEnd()
      // undici does this after the call above, in the same turn
      socket.destroy()
      const [outcome, isClosed] = yield* settled
      assert.deepStrictEqual([outcome.status, isClosed], [200, true])
    })
  )

  it.effect(
    "when the connection is closed, if the response is longer than the part that is read",
    () =>
      Effect.gen(function* () {
        const { controller, exchange, settled } = underWay()
        exchange.onResponseStart(controller, 500, {})
        exchange.onResponseData(controller, Buffer.alloc(20_000, "x"))
        const [outcome, isClosed] = yield* settled
        assert.deepStrictEqual([outcome.status, outcome.answer?.length], [500, 16_384])
        assert.isTrue(isClosed)
      })
  )

  it.effect("when the connection is closed, if its time is over", () =>
    Effect.gen(function* () {
      const { exchange, settled } = underWay()
      exchange.expire(30_000)
      const [outcome, isClosed] = yield* settled
      assert.deepStrictEqual(
        [outcome.failure, outcome.detail],
        ["timeout", "no response within 30 s"]
      )
      assert.isTrue(isClosed)
    })
  )

  it.effect("when its time is over, if its connection never closes", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, settled } = underWay(false)
      exchange.onResponseStart(controller, 204, {})
      exchange.onResponseEnd()
      socket.destroy()
      yield* Effect.promise(() => Promise.resolve())
      exchange.expire(30_000)
      const [outcome, isClosed] = yield* settled
      assert.deepStrictEqual([outcome.status, isClosed], [204, false])
    })
  )
})
