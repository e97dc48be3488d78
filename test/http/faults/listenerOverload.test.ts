import { connect } from "node:net"
import type { AddressInfo } from "node:net"
import { assert, describe, it } from "vitest"
import { makeListener } from "../../../src/http/server/Listener.ts"

/** docs/reference/http.md#overload, ADR 0196 */

/** Each request keeps the processor for so long: 500 a second. */
const workMillis = 2

const work = () => {
  const until = performance.now() + workMillis
  while (performance.now() < until);
}

const request = (
  port: number,
  method: string,
  path: string,
  onResponse: (text: string) => void
) => {
  const socket = connect(port, "127.0.0.1")
  const send = () => socket.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  socket.on("connect", send)
  socket.on("data", (chunk) => onResponse(chunk.toString("latin1")))
  socket.on("error", () => {})
  return { send, end: () => socket.destroy() }
}

const one = (port: number, method: string, path: string) =>
  new Promise<string>((resolve) => {
    const { end } = request(port, method, path, (text) => {
      end()
      resolve(text)
    })
  })

describe("a listener that does not keep up", () => {
  it("refuses requests at once, admits probes and cancels, and recovers", async () => {
    const { server } = makeListener()
    let isBusy = false
    server.on("request", (_, response) => {
      if (isBusy) work()
      response.end("done")
    })
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve())
    })
    const { port } = server.address() as AddressInfo
    const refusals: Array<string> = []
    let ready = 0
    const clients = Array.from({ length: 400 }, () => {
      const client = request(port, "POST", "/vendors/x/v1/y/generation", (text) => {
        if (text.startsWith("HTTP/1.1 503")) refusals.push(text)
        if (isBusy) client.send()
        else ready += 1
      })
      client.send()
      return client
    })
    // Node accepts one connection in each turn of the loop
    while (ready < clients.length) await new Promise((resolve) => setImmediate(resolve))
    isBusy = true
    for (const { send } of clients) send()
    const from = performance.now()
    while (refusals.length < 100 && performance.now() - from < 20_000) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    const [first = ""] = refusals
    assert.match(first, /^HTTP\/1.1 503 /u)
    assert.match(first, /\r\nretry-after: 1\r\n/u)
    assert.match(first, /\r\ntraceparent: 00-/u)
    assert.match(first, /"code":5003/u)
    assert.match(first, /overloaded/u)
    for (const path of ["/healthz", "/readyz", "/metrics", "/callbacks?token=x"]) {
      assert.match(await one(port, "GET", path), /^HTTP\/1.1 200 /u, path)
    }
    assert.match(await one(port, "DELETE", "/vendors/x/v1/y/generation/1"), /^HTTP\/1.1 200 /u)
    for (const { end } of clients) end()
    const ended = performance.now()
    let text = ""
    while (!text.startsWith("HTTP/1.1 200") && performance.now() - ended < 20_000) {
      text = await one(port, "POST", "/vendors/x/v1/y/generation")
    }
    assert.isBelow(performance.now() - ended, 5000)
    server.closeAllConnections()
    await new Promise((resolve) => {
      server.close(resolve)
    })
  }, 60_000)
})
