import { Redacted } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import type { AccountSetting } from "../../../src/domain/Provider.ts"
import { SecretMask } from "../../../src/vendors/upstream/SecretMask.ts"
import { UpstreamConnections } from "../../../src/vendors/upstream/UpstreamConnections.ts"
import { UpstreamExchange } from "../../../src/vendors/upstream/UpstreamExchange.ts"
import { until } from "../../support/until.ts"

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {}
/** The connection of each received call. */
const sockets: Array<Socket> = []
const server = createServer((request, response) => {
  sockets.push(request.socket)
  answer(request, response)
})
let connections: UpstreamConnections

beforeAll(async () => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
})
afterAll(async () => {
  server.close()
  server.closeAllConnections()
  await once(server, "close")
})
beforeEach(() => {
  sockets.length = 0
  answer = (_, response) => response.end("{}")
  const { port } = server.address() as AddressInfo
  connections = new UpstreamConnections(`http://127.0.0.1:${port}`, { allowH2: false })
  return () => connections.destroy()
})

const account: AccountSetting = {
  id: "openai:one",
  provider: "openai",
  key: Redacted.make("sk-vendor"),
  baseUrl: "http://127.0.0.1",
  weight: 1
}

const call = () =>
  new Promise<string>((resolve) => {
    new UpstreamExchange(
      { onResponse: ({ status }) => resolve(String(status)), onFailure: resolve },
      undefined,
      SecretMask.of(account),
      (_, run) => run()
    ).begin(connections, { path: "/", method: "POST", body: "{}" })
  })

/** Holds the responses back until this many calls are waiting. */
const together = (count: number) => {
  const waiting: Array<ServerResponse> = []
  answer = (_, response) => {
    waiting.push(response)
    if (waiting.length === count) for (const each of waiting.splice(0)) each.end("{}")
  }
}

describe("connections to an upstream", () => {
  it("are reused by sequential calls", async () => {
    for (let n = 0; n < 3; n += 1) assert.strictEqual(await call(), "200")
    assert.strictEqual(new Set(sockets).size, 1)
  })

  it("are separate for parallel calls, and the last used is used next", async () => {
    together(3)
    assert.deepStrictEqual(await Promise.all([call(), call(), call()]), ["200", "200", "200"])
    assert.strictEqual(new Set(sockets).size, 3)
    together(1)
    await call()
    await call()
    assert.strictEqual(sockets[4], sockets[3])
  })

  it("are not used again after they close, whichever side closes them", async () => {
    answer = (_, response) => response.setHeader("connection", "close").end("{}")
    assert.strictEqual(await call(), "200")
    assert.strictEqual(await call(), "200")
    answer = (request) => request.socket.destroy()
    assert.strictEqual(await call(), "broken")
    answer = (_, response) => response.end("{}")
    assert.strictEqual(await call(), "200")
    assert.strictEqual(new Set(sockets).size, 4)
  })

  it("fail the running calls when they are destroyed", async () => {
    answer = () => {}
    const running = call()
    await until(() => sockets.length === 1)
    await connections.destroy()
    assert.strictEqual(await running, "broken")
  })
})
