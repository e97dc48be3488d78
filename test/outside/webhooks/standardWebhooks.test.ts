import { Webhook as StandardWebhook } from "standardwebhooks"
import { Webhook as SvixWebhook } from "svix"
import { assert, describe, it } from "vitest"
import { startTestGateway } from "../../../src/testing/index.ts"

/** docs/reference/webhooks.md#standard-webhooks: the specification's own packages verify our deliveries. */

interface Received {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Signed {
  readonly id: string
  readonly secret: string
}

const packages = [
  ["standardwebhooks", StandardWebhook],
  ["svix", SvixWebhook]
] as const

/** A gateway, the deliveries that its receiver got, and calls with the user's key. */
const startReceiving = async () => {
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

describe.each(packages)("%s", (_name, Webhook) => {
  it("verifies every delivery to an endpoint, before and after a rotation with either secret", async () => {
    await using receiving = await startReceiving()
    const { createTask, post } = receiving
    const endpoint = await post<Signed>("/manage/v1/webhook-endpoints", {
      url: "https://example.com/hook",
      events: ["task.created", "task.succeeded"]
    })
    const first = await createTask()
    assert.strictEqual(first.length, 2)
    for (const { body, headers } of first) {
      new Webhook(endpoint.secret).verify(body, headers)
      assert.throws(() => new Webhook(endpoint.secret).verify(`${body} `, headers))
    }
    const rotated = await post<Signed>(`/manage/v1/webhook-endpoints/${endpoint.id}/rotate`, {})
    const second = await createTask()
    assert.strictEqual(second.length, 2)
    for (const { body, headers } of second) {
      for (const secret of [rotated.secret, endpoint.secret]) {
        new Webhook(secret).verify(body, headers)
      }
    }
  }, 60_000)
})
