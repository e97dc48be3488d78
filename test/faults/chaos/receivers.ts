import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { sign } from "../../../src/webhooks/Signature.ts"
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

/** A secret of an endpoint, with the times from which it no longer signs alone and beside a newer one. */
interface Signer {
  readonly secret: string
  current: number
  previous: number
}

/** A signed request that arrived. */
interface Signed {
  readonly id: string
  readonly path: string
  readonly seconds: number
  readonly body: Buffer
  readonly current: string
  readonly previous: string | undefined
}

/**
 * Signing takes place at most 8 seconds after the claim, and follows the database's clock as of the last heartbeat,
 * which a jump of the process's clock falsifies by up to 15 seconds.
 */
const signedLateMillis = 25_000

/** An https server with several paths, each a webhook endpoint with its own mood. */
export class Receivers {
  readonly deliveries = new Map<string, Delivery>()
  /** Ids of the outcome events of each task. */
  readonly outcomes = new Map<string, Set<string>>()
  readonly moods = new Map<string, Mood>()
  requests = 0
  /** Requests signed with a secret that had ended. */
  readonly badlySigned: Array<string> = []
  readonly #signers = new Map<string, Array<Signer>>()
  readonly #unknown: Array<Signed> = []
  /** Paths of endpoints with a secret that no client has seen. */
  readonly #unseen = new Set<string>()
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
        const body = Buffer.concat(chunks)
        const delivery = this.#record(id, path, body)
        const header = (name: string) => request.headers[`x-service-webhook-${name}`]?.toString()
        const seconds = Number(header("timestamp"))
        const [current, previous] = [header("signature") ?? "", header("signature-previous")]
        const signed = { id, path, seconds, body, current, previous }
        // A new secret may sign before the response that contains it has arrived
        if (!this.#verify(signed)) this.#unknown.push(signed)
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

  /** The secret signs from now on. The previous one signs beside it, and the one before that no longer signs. */
  sign(path: string, secret: string): void {
    const signers = this.#signers.get(path) ?? []
    for (const signer of signers) {
      if (signer.current < Infinity) signer.previous = Math.min(signer.previous, Date.now())
      signer.current = Math.min(signer.current, Date.now())
    }
    this.#signers.set(path, [...signers, { secret, current: Infinity, previous: Infinity }])
  }

  /** Another secret, which no client has seen, may have signed meanwhile. */
  signUnseen(path: string): void {
    this.#unseen.add(path)
  }

  /** No secret signs what is sent here from now on. */
  end(path: string): void {
    for (const signer of this.#signers.get(path) ?? []) {
      signer.current = Math.min(signer.current, Date.now())
      signer.previous = Math.min(signer.previous, Date.now())
    }
  }

  /** Requests that no secret of their endpoint has signed. */
  unsigned(): ReadonlyArray<string> {
    return this.#unknown
      .filter((signed) => !this.#unseen.has(signed.path) && !this.#verify(signed))
      .map(({ id, path }) => `${id} at ${path}`)
  }

  /** Records a secret that has ended. `false`: no known secret has made the signature. */
  #verify({ body, current, id, path, previous, seconds }: Signed): boolean {
    const parts = { deliveryId: id, timestampSeconds: seconds, body }
    const signers = this.#signers.get(path) ?? []
    const by = (signature: string | undefined) =>
      signers.findIndex(({ secret }) => sign(secret, parts) === signature)
    const late = (until: number) => seconds * 1000 - until
    const [place, before] = [by(current), by(previous)]
    const signer = signers[place]
    // A claim reads both secrets at once, so this holds whatever the clocks say
    if (signer !== undefined && before >= 0 && before !== place - 1) {
      this.badlySigned.push(`${id} at ${path}: with secrets ${place} and ${before}`)
    }
    const ends = [signer?.current, signers[before]?.previous].filter((end) => end !== undefined)
    for (const end of ends.filter((end) => late(end) > signedLateMillis)) {
      this.badlySigned.push(`${id} at ${path}: ${late(end)} ms after the rotation or the deletion`)
    }
    return signer !== undefined
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
