import { Effect } from "effect"
import { once } from "node:events"
import { connect } from "node:net"
import type { AddressInfo } from "node:net"
import { describe, it } from "vitest"
import { makeListener } from "../../../src/http/server/Listener.ts"

/** docs/operating.md#stopping */
describe("a listener that drains", () => {
  it("closes connections on which no request has begun: the server waits for none of them", async () => {
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
})
