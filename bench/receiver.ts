/** An HTTPS receiver in a separate process. Its certificate and key are JSON on the command line. */
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"

const { cert, delayMillis, key } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly cert: string
  readonly key: string
  readonly delayMillis: number
}
const body = Buffer.from("ok")
/** By delivery id: Unix time in milliseconds. */
const arrivals = new Map<string, number>()

const server = createServer({ cert, key, keepAlive: true }, (request, response) => {
  const id = request.headers["x-service-webhook-id"]
  if (typeof id === "string") arrivals.set(id, Date.now())
  request.resume()
  request.on("end", () => {
    const end = () => {
      response.writeHead(200, { "content-length": body.length })
      response.end(body)
    }
    if (delayMillis > 0) setTimeout(end, delayMillis)
    else end()
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, "127.0.0.1", () => {
  process.send?.({ port: (server.address() as AddressInfo).port })
})
process.on("message", () => {
  process.send?.({ arrivals: [...arrivals] })
  arrivals.clear()
})
process.on("disconnect", () => process.exit(0))
