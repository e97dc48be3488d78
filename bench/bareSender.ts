/**
 * A bare sender, for comparison: undici POST with HMAC, without a store. When `bench/lateness.ts` starts it,
 * it sends a number of deliveries, each at its due time, first cold and then warm.
 */
import { createHmac } from "node:crypto"
import { Agent } from "undici"
import { body, cpuMillis, percentiles, secret } from "./measures.ts"

/** The most connections that the service opens to one origin. */
export const connections = 128

export const post = async (agent: Agent, url: string, id: string, bytes: Uint8Array) => {
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = createHmac("sha256", secret)
    .update(`${id}.${timestamp}.`)
    .update(bytes)
    .digest("hex")
  const { origin, pathname } = new URL(url)
  const response = await agent.request({
    origin,
    path: pathname,
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "User-Agent": "Service-Webhook/1.0",
      "X-Service-Webhook-Id": id,
      "X-Service-Webhook-Timestamp": String(timestamp),
      "X-Service-Webhook-Signature": `v1=${signature}`
    },
    body: bytes
  })
  await response.body.text()
  if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode}`)
}

const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/** Sends each when it is due and a connection is free. The due times are spread evenly. */
const paced = async (agent: Agent, url: string, deliveries: number, spreadSeconds: number) => {
  const first = Date.now() + 500
  const late: Array<number> = []
  let next = 0
  const one = async () => {
    while (next < deliveries) {
      const due = first + (next * spreadSeconds * 1000) / deliveries
      next += 1
      const wait = due - Date.now()
      if (wait > 0) await pause(wait)
      late.push(Date.now() - due)
      await post(agent, url, `whd_${next}`, body)
    }
  }
  const cpu = cpuMillis()
  await Promise.all(Array.from({ length: connections }, one))
  return { late, micros: ((cpuMillis() - cpu) * 1000) / deliveries }
}

if (import.meta.main) {
  const { ca, deliveries, spreadSeconds, url } = JSON.parse(process.argv[2] ?? "{}") as {
    readonly ca: string
    readonly deliveries: number
    readonly spreadSeconds: number
    readonly url: string
  }
  const agent = new Agent({ connections, connect: { ca }, pipelining: 1 })
  for (const state of ["cold", "warm"]) {
    const { late, micros } = await paced(agent, url, deliveries, spreadSeconds)
    console.log(
      percentiles(`bare loop of undici and HMAC without a store, ${state}`, late),
      `${micros.toFixed(0)} µs CPU each`
    )
  }
  process.exit(0)
}
