/** The minimal proxy on Node: node:http in front, undici behind, the key replaced. */
import { createServer } from "node:http"
import { Agent } from "undici"

const agent = new Agent({ pipelining: 1 })
const origin = process.env.UPSTREAM ?? ""

createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const path = request.url ?? "/"
    agent.dispatch(
      {
        origin,
        path,
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer sk-vendor" },
        body: Buffer.concat(chunks)
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_, status, headers) => {
          const { connection: _connection, "keep-alive": _keepAlive, ...kept } = headers
          delete kept["transfer-encoding"]
          response.writeHead(status, kept)
        },
        onResponseData: (_, chunk) => void response.write(chunk),
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy()
      }
    )
  })
}).listen(Number(process.env.PORT), "127.0.0.1")
