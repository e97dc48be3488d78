import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { chatCompletion, chatEvents } from "../../support/mockOpenAi.ts"
import { pause } from "./processes.ts"
import type { Random } from "./random.ts"
import { tagPattern } from "./tags.ts"

/** What the vendor knows about a call. */
export interface SoldCall {
  requests: number
  /** The number of complete successful responses that it has sent. */
  answered: number
}

/** Serves chat completions, complete or as streams, each with the same usage; some are refused, slow or cut off. */
export class CallVendor {
  mood: "well" | "refuses" | "breaks" | "slow" = "well"
  readonly sold = new Map<string, SoldCall>()
  readonly #random: Random
  readonly #server = createServer((request, response) => {
    response.on("error", () => {})
    this.#serve(request, response).catch(() => response.destroy())
  })

  private constructor(random: Random) {
    this.#random = random
  }

  static async start(random: Random): Promise<CallVendor> {
    const vendor = new CallVendor(random)
    await new Promise<void>((resolve) => {
      vendor.#server.listen(0, "127.0.0.1", resolve)
    })
    return vendor
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ""
    for await (const chunk of request) body += String(chunk)
    const tag = tagPattern.exec(body)?.[0] ?? "untagged"
    const call = this.sold.get(tag) ?? { requests: 0, answered: 0 }
    this.sold.set(tag, call)
    call.requests += 1
    const random = this.#random
    const isFaulty = random.chance(this.mood === "well" ? 0.01 : this.mood === "slow" ? 0 : 0.5)
    if (isFaulty && this.mood !== "breaks") {
      const status = random.pick([429, 503])
      response.writeHead(status, { "content-type": "application/json" })
      return void response.end(JSON.stringify({ error: { message: "busy", type: "server_error" } }))
    }
    if (isFaulty && random.chance(0.5)) return void request.socket.destroy()
    const wait = this.mood === "slow" ? random.between(1000, 6000) : random.between(5, 300)
    if (!body.includes('"stream":true')) {
      await pause(wait)
      if (isFaulty) return void request.socket.destroy()
      response.writeHead(200, { "content-type": "application/json" })
      call.answered += 1
      return void response.end(JSON.stringify(chatCompletion("gpt-4o")))
    }
    response.writeHead(200, { "content-type": "text/event-stream" })
    const events = chatEvents(["a", "b", "c"], true)
    for (const [n, event] of events.entries()) {
      if (isFaulty && n === 2) return void request.socket.destroy()
      if (response.destroyed) return
      response.write(event)
      await pause(wait / 2)
    }
    call.answered += 1
    response.end()
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }
}
