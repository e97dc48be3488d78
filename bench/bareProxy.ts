/**
 * A minimal proxy on Node with node:http and undici that replaces the key. With `KEY` it also does what every gateway
 * needs to do: it looks up the key by its hash, gives the request an id, and parses both bodies.
 */
import { createHash, randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { Agent } from "undici"

const agent = new Agent({ pipelining: 1 })
const origin = process.env.UPSTREAM ?? ""
const hashOf = (text: string) => createHash("sha256").update(text).digest("base64")
const keys = new Set(process.env.KEY === undefined ? [] : [hashOf(`Bearer ${process.env.KEY}`)])
const isGateway = keys.size > 0

createServer((request, response) => {
  if (isGateway && !keys.has(hashOf(request.headers.authorization ?? ""))) {
    response.writeHead(request.method === "GET" ? 200 : 401).end()
    return
  }
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const path = request.url ?? "/"
    const body = Buffer.concat(chunks)
    const isWhole = isGateway && JSON.parse(body.toString()).stream !== true
    const received: Array<Buffer> = []
    agent.dispatch(
      {
        origin,
        path,
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer sk-vendor" },
        body
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_, status, headers) => {
          const { connection: _connection, "keep-alive": _keepAlive, ...kept } = headers
          delete kept["transfer-encoding"]
          if (isGateway) kept["x-request-id"] = randomUUID()
          response.writeHead(status, kept)
        },
        onResponseData: (_, chunk) => void (isWhole ? received.push(chunk) : response.write(chunk)),
        onResponseEnd: () => {
          if (!isWhole) {
            response.end()
            return
          }
          const whole = Buffer.concat(received)
          if (JSON.parse(whole.toString()).usage === undefined) response.destroy()
          else response.end(whole)
        },
        onResponseError: () => void response.destroy()
      }
    )
  })
}).listen(Number(process.env.PORT), "127.0.0.1")
