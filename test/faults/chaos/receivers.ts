import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { makeAuthority } from "../../support/certificates.ts"
import type { Random } from "./random.ts"

/** How the receiver currently responds to most requests. */
export type Mood = "well" | "fails" | "hangs" | "slow"

/** What arrived under one delivery id. */
export interface Delivery {
  readonly path: string
  readonly bodies: Set<string>
  readonly eventId: string
  readonly type: string
  readonly taskId: string | undefined
  /** When its requests arrived. */
  readonly times: Array<number>
  accepted: number
}

/** An https server with several paths, each a webhook endpoint with its own mood. */
export class Receivers {
  readonly deliveries = new Map<string, Delivery>()
  /** Ids of the outcome events of each task. */
  readonly outcomes = new Map<string, Set<string>>()
  readonly moods = new Map<string, Mood>()
  requests = 0
  readonly caFile: string
  readonly #server
  readonly #random: Random

  private constructor(
    caFile: string,
    tls: { readonly key: string; readonly cert: string },
    random: Random
  ) {
    this.caFile = caFile
    this.#random = random
    this.#server = createServer(tls, (request, response) => {
      const chunks: Array<Buffer> = []
      request.on("error", () => {})
      response.on("error", () => {})
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const id = String(request.headers["x-service-webhook-id"])
        const path = request.url ?? ""
        const delivery = this.#record(id, path, Buffer.concat(chunks))
        const status = this.#statusOf(path)
        if (status === undefined) return
        const answer = () => {
          if (response.destroyed) return
          // What is sent here counts as accepted, whether the response arrives or not
          if (status === 200) delivery.accepted += 1
          response.writeHead(status).end()
        }
        if (this.moods.get(path) === "slow") setTimeout(answer, this.#random.between(500, 8000))
        else answer()
      })
    })
  }

  static async start(folder: string, random: Random): Promise<Receivers> {
    const authority = await makeAuthority()
    const caFile = join(folder, "ca.pem")
    await writeFile(caFile, authority.ca)
    const receivers = new Receivers(caFile, await authority.issue(), random)
    await new Promise<void>((resolve) => {
      receivers.#server.listen(0, "127.0.0.1", resolve)
    })
    return receivers
  }

  url(path: string): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}${path}`
  }

  #statusOf(path: string): number | undefined {
    const mood = this.moods.get(path) ?? "well"
    if (mood === "hangs") return this.#random.chance(0.5) ? undefined : 200
    if (mood === "fails") return this.#random.chance(0.8) ? 503 : 200
    return this.#random.chance(0.01) ? 500 : 200
  }

  #record(id: string, path: string, body: Buffer): Delivery {
    this.requests += 1
    const hash = createHash("sha256").update(body).digest("base64")
    const event = JSON.parse(body.toString())
    const taskId: string | undefined = event.data.payload.task_info?.id
    const delivery = this.deliveries.get(id) ?? {
      path,
      bodies: new Set<string>(),
      eventId: String(event.id),
      type: String(event.type),
      taskId,
      times: [],
      accepted: 0
    }
    this.deliveries.set(id, delivery)
    delivery.bodies.add(`${path} ${hash}`)
    delivery.times.push(Date.now())
    if (taskId !== undefined && event.type !== "task.created") {
      this.outcomes.set(taskId, (this.outcomes.get(taskId) ?? new Set()).add(String(event.id)))
    }
    return delivery
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }
}
