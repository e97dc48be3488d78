import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Socket } from "node:net"
import type { Dispatcher } from "undici"
import type { AttemptOutcome } from "../../../src/domain/Webhook.ts"
import { WebhookExchange } from "../../../src/webhooks/WebhookExchange.ts"

/** An exchange on a connection that `abort` destroys, as undici's does; it is closed a turn later. */
const underWay = (doesClose = true) => {
  let isClosed = false
  const socket = new Socket()
  // A socket with a handle: `closed` is true at once, the event comes when the handle is closed
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
  /** The outcome, and whether its connection was closed when it was told. */
  const told = new Promise<readonly [AttemptOutcome, boolean]>((resolve) =>
    exchange.onSettled((outcome) => resolve([outcome, isClosed]))
  )
  exchange.onRequestStart(controller)
  return { controller, exchange, socket, told: Effect.promise(() => told) }
}

describe("an attempt is over, and its place free,", () => {
  it.effect("at the answer, when the connection is free for the next", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, told } = underWay()
      exchange.onResponseStart(controller, 200, {})
      exchange.onResponseEnd()
      const [outcome, isClosed] = yield* told
      assert.deepStrictEqual([outcome.status, isClosed], [200, false])
      socket.destroy()
    })
  )

  it.effect("when the connection is closed, if it is closed after the answer", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, told } = underWay()
      exchange.onResponseStart(controller, 200, { connection: "close" })
      exchange.onResponseEnd()
      // undici does so behind the call above, in the same turn
      socket.destroy()
      const [outcome, isClosed] = yield* told
      assert.deepStrictEqual([outcome.status, isClosed], [200, true])
    })
  )

  it.effect("when the connection is closed, if the answer is longer than what is read of it", () =>
    Effect.gen(function* () {
      const { controller, exchange, told } = underWay()
      exchange.onResponseStart(controller, 500, {})
      exchange.onResponseData(controller, Buffer.alloc(20_000, "x"))
      const [outcome, isClosed] = yield* told
      assert.deepStrictEqual([outcome.status, outcome.answer?.length], [500, 16_384])
      assert.isTrue(isClosed)
    })
  )

  it.effect("when the connection is closed, if its time is over", () =>
    Effect.gen(function* () {
      const { exchange, told } = underWay()
      exchange.expire(30_000)
      const [outcome, isClosed] = yield* told
      assert.deepStrictEqual(
        [outcome.failure, outcome.detail],
        ["timeout", "no answer within 30 s"]
      )
      assert.isTrue(isClosed)
    })
  )

  it.effect("when its time is over, should its connection never be closed", () =>
    Effect.gen(function* () {
      const { controller, exchange, socket, told } = underWay(false)
      exchange.onResponseStart(controller, 204, {})
      exchange.onResponseEnd()
      socket.destroy()
      yield* Effect.promise(() => Promise.resolve())
      exchange.expire(30_000)
      const [outcome, isClosed] = yield* told
      assert.deepStrictEqual([outcome.status, isClosed], [204, false])
    })
  )
})
