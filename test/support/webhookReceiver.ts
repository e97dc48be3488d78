import { writeFile } from "node:fs/promises"
import { createServer } from "node:https"
import { join } from "node:path"
import { makeAuthority } from "./certificates.ts"
import { listen, stop } from "./localServer.ts"
import { temporaryFolder } from "./temporaryFolder.ts"

/** One received delivery. */
export interface Received {
  readonly deliveryId: string
  readonly method: string | undefined
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what is in it
  readonly event: any
  readonly atMillis: number
}

/** A status, optionally with a body. */
type Answer = number | { readonly status: number; readonly text: string }

/** An https receiver on loopback with its own certificate. It records all deliveries. */
export const startReceiver = async (
  answer: (received: Received, before: ReadonlyArray<Received>) => Answer | Promise<Answer> = () =>
    200
) => {
  const authority = await makeAuthority()
  const caFile = join(temporaryFolder("receiver"), "ca.pem")
  await writeFile(caFile, authority.ca)
  const received: Array<Received> = []
  const server = createServer(await authority.issue(), (request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString()
      const one: Received = {
        deliveryId: String(request.headers["x-service-webhook-id"]),
        method: request.method,
        headers: request.headers,
        body,
        event: JSON.parse(body),
        atMillis: Date.now()
      }
      const answered = Promise.resolve(answer(one, received))
      received.push(one)
      void answered.then((it) => {
        const { status, text } = typeof it === "number" ? { status: it, text: "" } : it
        response.statusCode = status
        response.end(text)
      })
    })
  })
  const port = await listen(server)
  return {
    url: `https://localhost:${port}/hook`,
    received,
    ca: authority.ca,
    /** The environment variables that make a gateway process trust it. */
    env: { NODE_EXTRA_CA_CERTS: caFile },
    [Symbol.asyncDispose]: () => stop(server)
  }
}
