import { Effect } from "effect"
import { createServer } from "node:http"
import { connect } from "node:net"
import type { AddressInfo, Socket } from "node:net"
import { assert, describe, it } from "vitest"
import {
  addAcceptors,
  closeGently,
  isFree,
  sharesPorts
} from "../../../src/http/server/listener/Acceptors.ts"
import { listenerBounds, makeListener } from "../../../src/http/server/listener/Listener.ts"
import { until } from "../../support/until.ts"

/** ADR 0208 */

const host = "127.0.0.1"

const listening = (server: ReturnType<typeof createServer>, reusePort: boolean) =>
  new Promise<number>((resolve) => {
    server.listen({ host, port: 0, reusePort }, () =>
      resolve((server.address() as AddressInfo).port)
    )
  })

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

const answerOn = (port: number) =>
  new Promise<string>((resolve) => {
    const socket = connect(port, host, () =>
      socket.end("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    )
    let text = ""
    socket.on("data", (chunk) => (text += String(chunk)))
    socket.on("error", (error) => resolve(String(error)))
    socket.on("close", () => resolve(text.split("\r\n").at(-1) ?? ""))
  })

const connections = (port: number, count: number) =>
  Array.from({ length: count }, () => connect(port, host).on("error", () => {}))

describe("a port with the number of listening sockets that the system shares it between", () => {
  it("accepts many connections in a turn, serves them, and closes completely", async () => {
    const server = createServer((_request, response) => response.end("served"))
    addAcceptors(server)
    const port = await listening(server, sharesPorts)
    const seen = { accepted: 0 }
    server.on("connection", () => (seen.accepted += 1))
    await until(() => server.listening)
    // The others listen shortly after the first
    for (let turns = 0; turns < 50; turns += 1) await turn()
    const sockets = connections(port, 200)
    let most = 0
    for (let turns = 0; turns < 100_000 && seen.accepted < 200; turns += 1) {
      const before = seen.accepted
      await turn()
      most = Math.max(most, seen.accepted - before)
    }
    assert.strictEqual(seen.accepted, 200)
    // A socket gets one connection per turn
    assert.isAbove(most, sharesPorts ? 4 : 0)
    assert.strictEqual(await (await fetch(`http://${host}:${port}`)).text(), "served")
    assert.isFalse(await isFree({ host, port }))
    for (const socket of sockets) socket.destroy()
    const closed = new Promise((resolve) => {
      server.close(resolve)
    })
    server.closeAllConnections()
    assert.isUndefined(await closed)
    assert.isTrue(await isFree({ host, port }))
  })

  it("leaves nothing open when it is closed while it opens", async () => {
    const server = createServer()
    addAcceptors(server)
    const port = await listening(server, sharesPorts)
    await new Promise((resolve) => {
      server.close(resolve)
    })
    for (let turns = 0; turns < 50; turns += 1) await turn()
    assert.isTrue(await isFree({ host, port }))
  })
})

describe("a port that closes while connections arrive", () => {
  it("serves each connection that the kernel accepted before", async () => {
    const server = createServer((_request, response) => response.end("served"))
    const port = await listening(server, false)
    const answers: Array<Promise<string>> = []
    let turns = 0
    // Connects before the check of each turn and after its poll phase, so that nobody accepts the connection in this
    // turn
    const connectInLongTurns = () => {
      turns += 1
      if (turns === 8) return
      setImmediate(connectInLongTurns)
      if (turns % 2 === 1) answers.push(answerOn(port))
      const until = performance.now() + 4
      while (performance.now() < until);
    }
    setImmediate(connectInLongTurns)
    // Without a limit, because turns may take longer on a busy machine
    await Effect.runPromise(closeGently(server, Infinity))
    assert.deepStrictEqual(await Promise.all(answers), ["served", "served", "served", "served"])
    assert.isTrue(await isFree({ host, port }))
  })
})

describe("a listener", () => {
  it("closes a connection beyond its limit at once, and accepts one when another has closed", async () => {
    const { server } = makeListener({ ...listenerBounds, connectionsMax: 2 })
    const port = await listening(server, false)
    const open = new Set<Socket>()
    const more = () => {
      const [socket] = connections(port, 1)
      open.add(socket!)
      socket!.on("close", () => open.delete(socket!))
      return socket!
    }
    const first = more()
    more()
    more()
    await until(() => open.size === 2)
    const seen = { accepted: 0 }
    server.on("connection", (socket: Socket) => {
      if (!socket.destroyed) seen.accepted += 1
    })
    const gone = new Promise((resolve) => {
      first.on("close", resolve)
    })
    first.destroy()
    await gone
    // The server notices in a later turn
    for (let tries = 0; tries < 1000 && seen.accepted === 0; tries += 1) {
      more()
      await turn()
    }
    assert.isAbove(seen.accepted, 0)
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => {
      server.close(resolve)
    })
  })
})
