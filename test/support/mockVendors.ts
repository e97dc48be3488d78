import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import { afterAll, beforeEach } from "vitest"
import { listen, stop } from "./localServer.ts"

/** A request as the upstream received it. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
  /** Resolves when the connection of this request closes before the response is complete. */
  aborted: number | undefined
}

export type Script = (request: Seen, response: ServerResponse) => void | Promise<void>

/** A real HTTP server that stands for a vendor. It records requests and responds according to its script. */
export interface MockVendor {
  readonly origin: string
  readonly seen: Array<Seen>
  script: Script
  /** Forgets what it has seen, and responds as at first. */
  readonly reset: () => void
  readonly close: () => Promise<void>
}

/** An upstream of one test file, which is reset before each test and closed at the end. */
export const upstreamOfTests = async <
  A extends { readonly reset: () => void; readonly close: () => Promise<void> }
>(
  starting: Promise<A>
): Promise<A> => {
  const upstream = await starting
  beforeEach(() => upstream.reset())
  afterAll(() => upstream.close())
  return upstream
}

export const mockVendor = async (script: Script): Promise<MockVendor> => {
  const seen: Array<Seen> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const record: Seen = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString("utf8"),
        aborted: undefined
      }
      seen.push(record)
      response.on("close", () => {
        if (!response.writableEnded) record.aborted = performance.now()
      })
      Promise.try(mock.script, record, response).catch(() => response.destroy())
    })
  })
  const port = await listen(server)
  const mock: MockVendor = {
    origin: `http://127.0.0.1:${port}`,
    seen,
    script,
    reset: () => {
      seen.length = 0
      mock.script = script
    },
    close: () => stop(server)
  }
  return mock
}

export const json = (
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {}
) => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(value))
}

/** Sends server-sent events. `gate`, if given, is awaited before each one except the first. */
export const events = async (
  response: ServerResponse,
  all: ReadonlyArray<string>,
  gate?: (index: number) => Promise<void>
) => {
  response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req_mock" })
  for (const [index, event] of all.entries()) {
    if (index > 0 && gate !== undefined) await gate(index)
    if (response.destroyed) return
    response.write(event)
  }
  response.end()
}
