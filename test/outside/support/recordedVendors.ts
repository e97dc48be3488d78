import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as anthropic from "./recorded/anthropic.ts"
import * as gemini from "./recorded/gemini.ts"
import * as openai from "./recorded/openai.ts"

/** A recorded response: JSON, or the events of a stream. */
export type Recorded =
  | { readonly json: unknown }
  | { readonly events: ReadonlyArray<string> }
  | undefined

/** The gateway's keys at its vendors. */
export const vendorKeys = {
  openai: "sk-vendor-openai",
  anthropic: "sk-vendor-anthropic",
  gemini: "AIzaVendorGemini",
  deepseek: "sk-vendor-deepseek"
}

const recordOf = (path: string, body: unknown): Recorded =>
  openai.record(path, body) ?? anthropic.record(path, body) ?? gemini.record(path, body)

/** All vendors at one address. Each serves its own paths, and only for the gateway's keys. */
export const startRecordedVendors = async () => {
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const keys = [
        request.headers["authorization"]?.replace("Bearer ", ""),
        request.headers["x-api-key"],
        request.headers["x-goog-api-key"]
      ].filter((it) => it !== undefined)
      const text = Buffer.concat(chunks).toString("utf8")
      const { pathname } = new URL(request.url ?? "/", "http://vendor.test")
      const isKnown = keys.length === 1 && Object.values(vendorKeys).includes(String(keys[0]))
      const found = isKnown ? recordOf(pathname, text === "" ? {} : JSON.parse(text)) : undefined
      write(response, found)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}

const write = (response: ServerResponse, found: Recorded) => {
  if (found === undefined) {
    response.writeHead(404, { "content-type": "application/json" })
    response.end(JSON.stringify({ error: { message: "not recorded" } }))
  } else if ("json" in found) {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(JSON.stringify(found.json))
  } else {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const event of found.events) response.write(event)
    response.end()
  }
}
