import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { createServer as createPlain } from "node:http"
import type { RequestListener } from "node:http"
import { createServer } from "node:https"
import type { ServerOptions } from "node:https"
import type { Server, Socket } from "node:net"
import type { TLSSocket } from "node:tls"
import { NameCache } from "../../../src/vendors/upstream/NameCache.ts"
import { SingleConnections } from "../../../src/vendors/upstream/SingleConnections.ts"
import * as VendorHttp from "../../../src/vendors/VendorHttp.ts"
import { makeAuthority } from "../../support/certificates.ts"
import { kept } from "../../support/heap.ts"
import { listen } from "../../support/localServer.ts"

/** ADR 0080. */

const listening = (server: Server) =>
  Effect.acquireRelease(
    Effect.promise(() => listen(server)),
    () => Effect.sync(() => server.close())
  )

const respond: RequestListener = (request, response) => {
  request.resume()
  request.on("end", () => response.end("{}"))
}

const authority = Effect.promise(makeAuthority)

/** A vendor over TLS that records, in order, whether each connection resumed a session. */
const secureVendor = Effect.fnUntraced(function* (options: ServerOptions) {
  const server = createServer(options, respond)
  const resumed: Array<boolean> = []
  server.on("secureConnection", (socket: TLSSocket) => void resumed.push(socket.isSessionReused()))
  return { server, resumed, port: yield* listening(server) }
})

const submit = (http: VendorHttp.VendorHttp, url: string) =>
  http({ method: "POST", url, headers: {}, body: "{}", timeout: "10 seconds" as never })

describe("a paid submit's own connection", () => {
  for (const version of ["TLSv1.3", "TLSv1.2"] as const) {
    it.live(`resumes the previous connection's session with ${version}`, () =>
      Effect.gen(function* () {
        const { ca, issue } = yield* authority
        const issued = yield* Effect.promise(() => issue())
        const { port, resumed } = yield* secureVendor({ ...issued, maxVersion: version })
        const http = yield* VendorHttp.make({ ca })
        for (let n = 0; n < 3; n += 1) {
          const { status } = yield* submit(http, `https://localhost:${port}/job`)
          assert.strictEqual(status, 200)
          // Like the time between two submits of a quiet service
          kept()
        }
        assert.deepStrictEqual(resumed, [false, true, true])
      })
    )
  }

  it.live("makes a full handshake if the vendor no longer knows the session", () =>
    Effect.gen(function* () {
      const { ca, issue } = yield* authority
      const issued = yield* Effect.promise(() => issue())
      const { port, resumed, server } = yield* secureVendor(issued)
      const http = yield* VendorHttp.make({ ca })
      const send = submit(http, `https://localhost:${port}/job`)
      yield* send
      server.setTicketKeys(Buffer.alloc(48, 7))
      yield* send
      yield* send
      assert.deepStrictEqual(resumed, [false, false, true])
    })
  )

  it.live("is not made to an untrusted host, even with the session of another host", () =>
    Effect.gen(function* () {
      const { ca, issue } = yield* authority
      const [good, expired] = yield* Effect.promise(() =>
        Promise.all([issue(), issue({ expired: true })])
      )
      const ticketKeys = Buffer.alloc(48, 7)
      const vendor = yield* secureVendor({ ...good, ticketKeys })
      const other = yield* secureVendor({ ...expired, ticketKeys })
      const http = yield* VendorHttp.make({ ca })
      yield* submit(http, `https://localhost:${vendor.port}/job`)
      const failure = yield* Effect.flip(submit(http, `https://localhost:${other.port}/job`))
      assert.deepInclude(failure, { _tag: "NoResponse", sent: false })
      yield* submit(http, `https://localhost:${vendor.port}/job`)
      assert.deepStrictEqual(vendor.resumed, [false, true])
    })
  )

  it.live("is never reused, so a vendor that closes idle connections breaks no submit", () =>
    Effect.gen(function* () {
      const used = new Map<Socket, number>()
      const server = createPlain((request, response) => {
        used.set(request.socket, (used.get(request.socket) ?? 0) + 1)
        request.resume()
        // Announces keep-alive, but closes the connection at once
        request.on("end", () => {
          response.end("{}")
          response.on("finish", () => request.socket.destroySoon())
        })
      })
      const port = yield* listening(server)
      const http = yield* VendorHttp.make()
      const send = submit(http, `http://127.0.0.1:${port}/job`)
      const rounds = Array.from({ length: 50 }, () =>
        Effect.all([send, send, send, send], { concurrency: "unbounded" })
      )
      const all = yield* Effect.all(rounds)
      assert.isTrue(all.flat().every(({ status }) => status === 200))
      assert.strictEqual(used.size, 200)
      assert.isTrue([...used.values()].every((requests) => requests === 1))
    })
  )

  it.live("ends without an error with a stack", () =>
    Effect.gen(function* () {
      const port = yield* listening(createPlain(respond))
      const http = yield* VendorHttp.make()
      const send = submit(http, `http://localhost:${port}/job`)
      // The first one formats the stack of the shared error
      yield* send
      const formatted: Array<string> = []
      const { prepareStackTrace } = Error
      Error.prepareStackTrace = (error) => {
        formatted.push(error.message)
        return ""
      }
      yield* Effect.ensuring(
        Effect.repeat(send, { times: 20 }),
        Effect.sync(() => {
          Error.prepareStackTrace = prepareStackTrace
        })
      )
      assert.deepStrictEqual(formatted, [])
    })
  )

  it.live("resolves a name again if none of its addresses accepts a connection", () =>
    Effect.gen(function* () {
      const port = yield* listening(createPlain(respond))
      const asked: Array<string> = []
      const names = new NameCache({
        lookup: (host) => {
          asked.push(host)
          // Nothing listens there
          const address = asked.length === 1 ? "127.0.0.2" : "127.0.0.1"
          return Promise.resolve([{ address, family: 4 }])
        }
      })
      const connections = new SingleConnections({ connectMillis: 5000, names })
      const statusOf = Effect.promise(async () => {
        const client = connections.open(new URL(`http://vendor.test:${port}`))
        const response = await client.request({ path: "/", method: "POST" }).catch(() => undefined)
        await response?.body.dump()
        connections.close(client)
        return response?.statusCode
      })
      assert.deepStrictEqual(
        [yield* statusOf, yield* statusOf, yield* statusOf],
        [undefined, 200, 200]
      )
      assert.lengthOf(asked, 2)
    })
  )
})
