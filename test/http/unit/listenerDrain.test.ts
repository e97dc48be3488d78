import { Effect } from "effect"
import { once } from "node:events"
import type { IncomingMessage, ServerResponse } from "node:http"
import { connect } from "node:net"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { setImmediate } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { makeListener } from "../../../src/http/server/listener/Listener.ts"

/** docs/operating.md#stopping */
describe("a listener that drains", () => {
  it("closes connections on which no request has begun, so the server does not wait for them", async () => {
    const { drain, server } = makeListener()
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const closed = once(server, "close")
    const spare = connect((server.address() as AddressInfo).port, "127.0.0.1")
    const spareClosed = once(spare, "close")
    await once(server, "connection")

    drain.begin()
    await Effect.runPromise(Effect.andThen(drain.stopListening, drain.idle))
    await Promise.all([spareClosed, closed])
  })

  for (const expected of ["100-continue", "something"]) {
    it(`waits for a request that expects ${expected}, and closes its connection after it`, async () => {
      const { drain, server } = makeListener()
      const requests: Array<ServerResponse> = []
      const keep = (_: IncomingMessage, response: ServerResponse) => void requests.push(response)
      // Like the server of the routes
      server.on("request", keep).on("checkContinue", keep)
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const closed = once(server, "close")
      const client = connect((server.address() as AddressInfo).port, "127.0.0.1")
      client.write(`POST / HTTP/1.1\r\nhost: x\r\nexpect: ${expected}\r\ncontent-length: 2\r\n\r\n`)
      while (requests.length === 0) await setImmediate()
      assert.isTrue(drain.open()[0] === requests[0])

      drain.begin()
      const drained = Effect.runPromise(Effect.andThen(drain.stopListening, drain.idle))
      client.write("{}")
      requests[0]?.end("done")
      const received = await text(client)
      assert.match(received, /^connection: close\r$/imu)
      assert.match(received, /done$/u)
      await Promise.all([drained, closed])
    })
  }
})
