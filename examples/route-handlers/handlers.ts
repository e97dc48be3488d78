import { verifyWebhook } from "../../src/webhooks/verifyWebhook.ts"

/** What the program needs of its environment. */
export interface Environment {
  /** The global `fetch`, or that of a test's gateway. */
  readonly fetch: typeof globalThis.fetch
  readonly gatewayUrl: string
  readonly apiKey: string
  /** Of the webhook endpoint, `whsec_…`. */
  readonly webhookSecret: () => string
}

interface Picture {
  readonly status: "ordered" | "ready" | "failed"
  readonly url?: string
}

/** The part of an event that the program reads. docs/reference/webhooks.md#task-events */
interface TaskEvent {
  readonly type: string
  readonly data: {
    readonly payload: {
      readonly task_info: { readonly id: string }
      readonly images?: ReadonlyArray<string>
    }
  }
}

/**
 * Route handlers as Next.js has them, a `Request` in and a `Response` out: `orderPicture` is the `POST` of
 * `app/pictures/route.ts`, `showPicture` its `GET`, `receiveWebhook` the `POST` of `app/webhooks/route.ts`.
 */
export const makeHandlers = (environment: Environment) => {
  const { apiKey, fetch, gatewayUrl, webhookSecret } = environment
  // A table of the program's database, in a program
  const pictures = new Map<string, Picture>()
  const seen = new Set<string>()

  const orderPicture = async (request: Request): Promise<Response> => {
    const { prompt } = (await request.json()) as { prompt: string }
    const url = new URL("/vendors/alibaba/v1/text-to-image-max/generation", gatewayUrl)
    const created = await fetch(url, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({ prompt })
    })
    if (created.status !== 202) return Response.json({ error: "try again later" }, { status: 502 })
    const { task_info } = (await created.json()) as { task_info: { id: string } }
    // The webhook may have come before this answer
    if (!pictures.has(task_info.id)) pictures.set(task_info.id, { status: "ordered" })
    return Response.json({ id: task_info.id }, { status: 202 })
  }

  const showPicture = (request: Request): Response => {
    const picture = pictures.get(new URL(request.url).searchParams.get("id") ?? "")
    return picture === undefined ? new Response(null, { status: 404 }) : Response.json(picture)
  }

  const receiveWebhook = async (request: Request): Promise<Response> => {
    const { headers } = request
    // The bytes that were signed, before anything parses them
    const body = await request.text()
    const verified = await verifyWebhook({ headers, body, secret: webhookSecret() })
    if (!verified.valid) return Response.json({ error: verified.reason }, { status: 400 })
    // A delivery may come twice
    const id = headers.get("x-service-webhook-id") ?? ""
    if (seen.has(id)) return new Response(null, { status: 204 })
    const { data, type } = JSON.parse(body) as TaskEvent
    const { images, task_info } = data.payload
    if (type === "task.succeeded") {
      pictures.set(task_info.id, {
        status: "ready",
        ...(images?.[0] === undefined ? {} : { url: images[0] })
      })
    }
    if (type === "task.failed") pictures.set(task_info.id, { status: "failed" })
    seen.add(id)
    return new Response(null, { status: 204 })
  }

  return { orderPicture, receiveWebhook, showPicture }
}
