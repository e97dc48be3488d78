import { Agent, createServer, request as httpRequest } from "node:http"
import type { IncomingMessage, RequestOptions, ServerResponse } from "node:http"
import { listen, stop } from "./localServer.ts"

/**
 * Two load balancers in front of the same processes. `plain` sends requests only to processes whose `/readyz` was 200
 * at its last check, every 200 ms. `naive` sends to each in turn, whatever its state. Both keep connections, and try
 * the next process only if a connection cannot be opened.
 */
export const startBalancer = async (
  kind: "plain" | "naive",
  backends: ReadonlyArray<URL>
): Promise<Balancer> => {
  const agent = new Agent({ keepAlive: true })
  const isReady = new Map(backends.map((backend) => [backend.href, true]))
  const retries = { connect: 0 }
  let turn = 0
  const probe = () => {
    for (const backend of backends) {
      const ask = httpRequest(new URL("/readyz", backend), { agent }, (response) => {
        response.resume()
        isReady.set(backend.href, response.statusCode === 200)
      })
      ask.on("error", () => isReady.set(backend.href, false))
      ask.end()
    }
  }
  const probes = kind === "plain" ? setInterval(probe, 200) : undefined
  const next = (): URL => {
    const usable = backends.filter((it) => kind === "naive" || isReady.get(it.href) === true)
    turn += 1
    const chosen = (usable.length === 0 ? backends : usable)[turn % (usable.length || 3)]
    if (chosen === undefined) throw new Error("no process")
    return chosen
  }

  const forward = (request: IncomingMessage, response: ServerResponse, body: Buffer, tries = 0) => {
    const { headers, method, url } = request
    const options: RequestOptions = { agent, headers, ...(method === undefined ? {} : { method }) }
    const upstream = httpRequest(new URL(url ?? "/", next()), options, (answer) => {
      const { connection: _, ...rest } = answer.headers
      response.writeHead(answer.statusCode ?? 502, rest)
      answer.on("error", () => response.destroy())
      answer.pipe(response)
    })
    upstream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNREFUSED" && tries < 10) {
        retries.connect += 1
        return forward(request, response, body, tries + 1)
      }
      // The idle connection was closed while the request was being sent; proxies resend such a request once
      if (error.code === "ECONNRESET" && upstream.reusedSocket && tries < 10) {
        return forward(request, response, body, tries + 1)
      }
      response.writeHead(502).end(`${kind}: ${error.code}`)
    })
    upstream.end(body)
  }

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => forward(request, response, Buffer.concat(chunks)))
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}`,
    retries,
    [Symbol.asyncDispose]: async () => {
      clearInterval(probes)
      agent.destroy()
      await stop(server)
    }
  }
}

export interface Balancer extends AsyncDisposable {
  readonly url: string
  /** How often a connection to a process that no longer listens was retried. */
  readonly retries: { connect: number }
}
