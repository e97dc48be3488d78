import { Data, Effect, Schema } from "effect"
import type { Scope } from "effect"
import type { IncomingMessage } from "node:http"
import { createServer } from "node:https"
import { TaskEventData } from "../../domain/Event.ts"
import { verifyWebhook } from "../../webhooks/verifyWebhook.ts"
import type { VerifyResult } from "../../webhooks/verifyWebhook.ts"
import type { Certificate } from "./Certificate.ts"

const Event = Schema.Struct({ id: Schema.String, type: Schema.String, data: TaskEventData })
const decodeEvent = Schema.decodeUnknownOption(Schema.fromJsonString(Event))

/** A received webhook and the results of `verifyWebhook`. */
export interface Received {
  readonly deliveryId: string
  readonly event: typeof Event.Type
  readonly verified: VerifyResult
  /** The result for a body with one changed byte, which must be refused. */
  readonly tampered: VerifyResult
}

export interface Receiver {
  readonly url: string
  /** Sets the secret with which signatures are verified. */
  readonly useSecret: (secret: string) => void
  /** The webhooks of a task, oldest first. */
  readonly of: (taskId: string) => ReadonlyArray<Received>
}

/** The receiver cannot listen. */
export class ReceiverFailed extends Data.TaggedError("ReceiverFailed")<{
  readonly cause: unknown
}> {}

/** Starts an https server on a free loopback port, written as a customer would write it. */
export const startReceiver = Effect.fn("Demo.startReceiver")(function* (
  certificate: Certificate,
  serviceName: string
): Effect.fn.Return<Receiver, ReceiverFailed, Scope.Scope> {
  let secret = ""
  const received: Array<Received> = []
  const server = createServer(
    { key: certificate.key, cert: certificate.cert },
    (request, response) => {
      accept(request, secret, serviceName)
        .then((webhook) => {
          const known = received.some((it) => it.deliveryId === webhook?.deliveryId)
          if (webhook !== undefined && !known) received.push(webhook)
          response.writeHead(webhook?.verified.valid === true ? 204 : 400).end()
        })
        // The sender has closed the connection
        .catch(() => response.destroy())
    }
  )
  const listening = Effect.callback<number, ReceiverFailed>((resume) => {
    server.once("error", (cause) => resume(Effect.fail(new ReceiverFailed({ cause }))))
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
  const port = yield* Effect.acquireRelease(listening, () =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    })
  )
  return {
    url: `https://localhost:${port}/webhooks`,
    useSecret: (value) => {
      secret = value
    },
    of: (taskId) => received.filter((it) => it.event.data.payload.task_info.id === taskId)
  }
})

const accept = async (
  request: IncomingMessage,
  secret: string,
  serviceName: string
): Promise<Received | undefined> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of request) if (chunk instanceof Uint8Array) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const event = decodeEvent(body.toString("utf8"))
  if (event._tag === "None") return undefined
  const headers = request.headers
  const other = Uint8Array.from(body)
  other[other.length - 2] = 0x20
  return {
    deliveryId: String(headers[`x-${serviceName.toLowerCase()}-webhook-id`]),
    event: event.value,
    verified: await verifyWebhook({ headers, body, secret, serviceName }),
    tampered: await verifyWebhook({ headers, body: other, secret, serviceName })
  }
}
