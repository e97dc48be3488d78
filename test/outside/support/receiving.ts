import { assert } from "vitest"
import { startTestGateway } from "../../../src/testing/index.ts"

export interface Received {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface Signed {
  readonly id: string
  readonly secret: string
}

/** A gateway, the deliveries received, and calls with the user's key. */
export const startReceiving = async () => {
  const received: Array<Received> = []
  const gateway = await startTestGateway({
    receiver: async (request) => {
      received.push({ headers: Object.fromEntries(request.headers), body: await request.text() })
      return new Response("ok")
    }
  })
  const post = async <A>(path: string, body: unknown): Promise<A> => {
    const response = await gateway.fetch(path, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    assert.isTrue(response.ok, await response.clone().text())
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test fails when it is another
    return (await response.json()) as A
  }
  const createTask = async () => {
    await post("/vendors/alibaba/v1/text-to-image-max/generation", { prompt: "雪の城" })
    await gateway.runUntilQuiet()
    return received.splice(0)
  }
  return { gateway, post, createTask, [Symbol.asyncDispose]: gateway.close }
}

/** Deliveries with the secrets that verify them: before a rotation, and after it with either secret. */
export const signedDeliveries = async () => {
  await using receiving = await startReceiving()
  const { createTask, post } = receiving
  const endpoint = await post<Signed>("/manage/v1/webhook-endpoints", {
    url: "https://example.com/hook",
    events: ["task.succeeded"]
  })
  const signed = async (...secrets: ReadonlyArray<string>) =>
    (await createTask()).map(({ body, headers }) => ({ body, headers, secrets }))
  const before = await signed(endpoint.secret)
  const rotated = await post<Signed>(`/manage/v1/webhook-endpoints/${endpoint.id}/rotate`, {})
  return [...before, ...(await signed(rotated.secret, endpoint.secret))]
}
